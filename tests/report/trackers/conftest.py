"""A folder as a run leaves it, with a report, a figure and a model; nobody writes to it."""

import math

import pytest
from PIL import Image

from idiolect.study.store.store import Store
from tests.report import stores

CONFIG = {"rounds": 20, "data": {"name": "table", "path": "/home/somebody/own.csv", "test": 0.25}, "seen": None}


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracked") / "run"
    with Store(folder) as store:
        exp = stores.experiment([{"name": "fedavg"}, {"name": "local"}], seeds=1)
        store.set_fact("experiment", exp.model_dump(mode="json"))
        run = stores.start(store, exp, "cell0", "fedavg", 0)
        with store._db.transaction() as db:
            import json

            db.execute("UPDATE runs SET config = ?", (json.dumps(CONFIG | {"method": {"rate": 0.1}}),))
        stores.record(store, run, 0, stores.TRAINED[0], splits=("train", "test"), diagnostics={"gap": math.nan})
        stores.record(store, run, 20, stores.TRAINED[20], splits=("train", "test"), diagnostics={"gap": 0.5})
        store.finish(run, "done")
        models = store.models_folder(store.run(run))
        stores.record(store, stores.start(store, exp, "cell0", "local", 0), 10, stores.local(0)[0])
    models.mkdir(parents=True)
    (models / "global.safetensors").write_bytes(b"model")
    (folder / "report.md").write_text("# A report")
    (folder / "figures").mkdir()
    Image.new("RGB", (8, 4), "red").save(folder / "figures" / "curves.png")
    return folder
