"""What the pages take for granted: the files of their reader's folder, and the names their Python begins with."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HOSPITALS = [*(f"hospital {i}" for i in range(5)), "St. Mary"]


def patients(rows: int, seed: int = 0) -> pd.DataFrame:
    """A table as the pages have it: three numbers, a hospital, an outcome."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    table = pd.DataFrame(x, columns=["age", "dose", "score"])
    table["hospital"] = np.resize(HOSPITALS, rows)
    table["outcome"] = np.where(x[:, 0] + 0.3 * rng.normal(size=rows) > 0, "well", "ill")
    return table


def put_files(folder: Path) -> None:
    """The reader's files: patients.csv, also as Parquet, new.csv, and the experiment of the page on these."""
    patients(240).to_csv(folder / "patients.csv", index=False)
    patients(240).to_parquet(folder / "patients.parquet")
    patients(12, seed=1).drop(columns="outcome").to_csv(folder / "new.csv", index=False)


def names_of(page: str) -> dict[str, Any]:
    """The names with which a page's Python begins."""
    return {"idiolect": __import__("idiolect"), "np": np, **GIVEN.get(page, dict)()}


def _data_page() -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def ward(count: int) -> tuple[Any, ...]:
        has_text = np.arange(count) % 3 > 0
        return rng.normal(size=(count, 128, 3)), rng.normal(size=(count, 50)), has_text, np.arange(count) % 2

    return {"wards": {"a": ward(12), "b": ward(9)}}


def _estimators_page() -> dict[str, Any]:
    import sklearn
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import GroupKFold, cross_val_score
    from sklearn.pipeline import make_pipeline

    rows = patients(60)
    x, y, groups = rows[["age", "dose", "score"]].to_numpy(), rows["outcome"].to_numpy(), rows["hospital"].to_numpy()
    given = {"X": x, "y": y, "hospitals": groups, "X_new": x[:6], "hospitals_new": groups[:6], "sklearn": sklearn}
    return given | {
        "SimpleImputer": SimpleImputer,
        "GroupKFold": GroupKFold,
        "cross_val_score": cross_val_score,
        "make_pipeline": make_pipeline,
    }


def _models_page() -> dict[str, Any]:
    import equinox
    import flax.linen as nn
    import jax
    from flax import nnx

    import idiolect

    class Network(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.hidden, self.out = nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.out(nnx.relu(self.hidden(x)))

    class Linen(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.Dense(2)(nn.relu(nn.Dense(4)(x)))

    data = idiolect.data.from_table(patients(60), client="hospital", label="outcome")
    key = jax.random.key(0)
    given = {"equinox": equinox, "jax": jax, "nnx": nnx, "Network": Network, "net": Linen(), "data": data, "key": key}
    return given | {"w1": jax.numpy.ones((4, 3)), "w2": jax.numpy.ones((2, 4)), "x": data.train.x[:1]}


def _new_clients_page() -> dict[str, Any]:
    from idiolect.data import encode_like, from_table

    data = from_table(patients(60), client="hospital", label="outcome")
    later = patients(24, seed=2).assign(hospital=lambda t: np.resize(["st-mary", "st-john"], len(t)))
    return {"data": data, "new": encode_like(data, later), "frame": later}


def _schema_page() -> dict[str, Any]:
    from idiolect.deploy.schema.summarise import summarise

    return {"told_by_south": summarise("patients.csv", site="south", label="outcome", minimum=5)}


def _tables_page() -> dict[str, Any]:
    import idiolect
    from idiolect.models.export import export_model

    data = idiolect.data.from_table("patients.csv", client="hospital", label="outcome")
    spec = {"name": "mlp", "hidden": [5, 4]}
    run = idiolect.run(data, spec, "local", rounds=2, splits=("train",))
    model = run.models("local")["St. Mary"]
    export_model(model, "st-mary", "numpy")
    frame = pd.read_csv("new.csv")
    about = {"feature_shape": data.feature_shape, "num_outputs": data.num_outputs, "task": data.task}
    extra = {"client": "St. Mary", "classes": list(data.classes or ())}
    idiolect.save_model("MODEL.safetensors", model.module, spec=spec, schema=data.schema, extra=extra, **about)
    x = data.schema.encode(frame) if data.schema else None
    clients = [(name, (np.ones((60, 3)), np.arange(60) % 2)) for name in ("a", "b")]
    return {"frame": frame, "x": x, "exported": model, "clients": clients}


def _readme_page() -> dict[str, Any]:
    import equinox
    import jax

    return {"equinox": equinox, "jax": jax}


def _agents_page() -> dict[str, Any]:
    """The folder that the page's command makes, with fewer rounds."""
    import idiolect.cli.main

    table = ["--data", "patients.csv", "--client", "hospital", "--label", "outcome"]
    command = ["compare", *table, "--methods", "ditto,local", "--rounds", "2", "--out", "mine", "--jobs", "1"]
    idiolect.cli.main.app(command, standalone_mode=False)
    return {}


GIVEN = {
    "README.md": _readme_page,
    "agents.md": _agents_page,
    "coming-from.md": _estimators_page,
    "data.md": _data_page,
    "estimators.md": _estimators_page,
    "models.md": _models_page,
    "new-clients.md": _new_clients_page,
    "sites-schema.md": _schema_page,
    "tables.md": _tables_page,
}
