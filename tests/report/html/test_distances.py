import json

import numpy as np
from safetensors.numpy import save_file

from idiolect.report.html import distances
from idiolect.report.html.distances import distances_of
from tests.report.html.made import compared, data_of


def saved(results, method, files):
    """Model files of the first seed: name -> (owners, weights)."""
    folder = results.store.models_folder(results.store.run(f"cell0/{method}/seed0"))
    folder.mkdir(parents=True)
    lines = []
    for name, (owners, *arrays) in files.items():
        save_file(
            {f"layer{i}": np.asarray(a, np.float32) for i, a in enumerate(arrays)}, folder / f"{name}.safetensors"
        )
        lines.append({"file": f"{name}.safetensors", **owners})
    (folder / "index.json").write_text(json.dumps({"files": lines}))
    return folder


def test_each_clients_model_to_the_shared_one(tmp_path, monkeypatch):
    results = compared(tmp_path)
    cell, shared = results.experiment.cells[0], ("fedavg", "global")
    assert distances_of(results, cell, shared) is None
    saved(results, "fedavg", {"global": ({"model": "global", "clients": "all"}, [0.0, 0.0], [1.0])})
    assert distances_of(results, cell, shared) is None
    folder = saved(results, "ditto", {
        "a": ({"model": "personal", "client": "north"}, [3.0, 0.0], [5.0]),
        "b": ({"model": "personal", "client": "south"}, [0.0, 0.0], [1.0]),
        "c": ({"model": "personal", "client": "east"}, [0.0, 0.0, 0.0], [1.0]),
    })  # fmt: skip
    assert distances_of(results, cell, shared) == {("ditto", "personal"): [5.0, 0.0, None]}
    assert data_of(results)["cells"][0]["clients"]["distances"] == {"m2": [5, 0, None]}
    (folder / "b.safetensors").write_bytes(b"damaged")
    assert distances_of(results, cell, shared) == {("ditto", "personal"): [5.0, None, None]}
    assert distances_of(results, cell, None) is None
    monkeypatch.setattr(distances, "MOST_BYTES", 10)
    assert distances_of(results, cell, shared) is None
