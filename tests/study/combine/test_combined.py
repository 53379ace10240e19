import json
from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.data.federated import FederatedData
from idiolect.study.combine.combined import Combined, Content, check_kind, is_combined, read_combined, write_combined

Runs = tuple[Path, FederatedData]
MODELS = {"local": "local", "fedavg": "global", "fedavg-ft": "adapted"}
WEIGHTS = {"north": (0.2, 0.3, 0.5), "south": (0.0, 1.0, 0.0), "west": (0.6, 0.1, 0.3)}


def content(folder: Path, others: tuple[float, float, float] = (0.5, 0.3, 0.2), **changes: object) -> Content:
    given = {
        "kind": "blend",
        "rows": 9,
        "methods": {name: {"folder": f"../../{name}/seed0", "model": model} for name, model in MODELS.items()},
        "weights": {client: dict(zip(MODELS, row, strict=True)) for client, row in WEIGHTS.items()},
        "others": dict(zip(MODELS, others, strict=True)),
    }
    return Content.model_validate({**given, **changes})


def written(runs: Runs, **changes: object) -> Combined:
    folder = runs[0] / "models" / "wards" / "made" / "seed0"
    folder.mkdir(parents=True, exist_ok=True)
    return write_combined(folder / "combined.json", content(folder, **changes))  # pyright: ignore[reportArgumentType]


def test_outputs_are_the_weighted_mean_of_the_methods(runs: Runs) -> None:
    """By hand, in float64: the sum of weight times probability, or times number."""
    made = read_combined(written(runs).path.parent)
    data = runs[1]
    part = data.stored("test")
    names = np.asarray(data.clients, object)[part.owners]
    by_method = {name: source.predicted(part.x, names) for name, source in made.sources.items()}
    table = np.stack([WEIGHTS[name] for name in names])
    expected = sum(table[:, [k]] * by_method[name] for k, name in enumerate(MODELS))
    found = made.outputs(part.x, names)
    np.testing.assert_allclose(np.exp(found) if data.task == "classification" else found, expected, rtol=1e-12)
    assert made.weights.loc["west"].tolist() == list(WEIGHTS["west"])
    assert "blend of local, fedavg, fedavg-ft for 3 clients" in repr(made)


def test_a_new_client_has_the_federations_weights_of_shared_models(runs: Runs) -> None:
    assert written(runs).shares("east") == {"fedavg": 1.0}  # the only shared model
    with pytest.raises(DataError, match="'idiolect personalize' makes one"):
        written(runs, others=(0.7, 0.0, 0.3)).shares("east")


def test_a_file_that_is_damaged_is_refused_in_one_line(runs: Runs, tmp_path: Path) -> None:
    good = json.loads(written(runs).path.read_text())
    file = tmp_path / "combined.json"
    assert not is_combined(tmp_path)
    changes = {
        "the weights of 'north'": {"weights": {**good["weights"], "north": {"local": 1.0}}},
        "the weights of 'others'": {"others": {**good["others"], "local": 0.9}},
        "format 2, this version": {"version": 2},
        "is damaged (kind": {"kind": "other"},
        "it has no client": {"weights": {}},
        "is not relative": {"methods": {**good["methods"], "local": {"folder": "/etc", "model": "local"}}},
    }
    for words, change in changes.items():
        file.write_text(json.dumps({**good, **change}))
        assert is_combined(tmp_path)
        with pytest.raises(StoreError) as error:
            read_combined(tmp_path)
        assert words in str(error.value)
        assert "\n" not in str(error.value)
    for text in ("", "[1]", "{", "\x00"):
        file.write_text(text)
        with pytest.raises(StoreError, match="idiolect combine"):
            read_combined(file)
    with pytest.raises(StoreError, match="cannot be read"):
        read_combined(tmp_path / "gone" / "combined.json")


def test_another_word_is_no_kind() -> None:
    assert check_kind("portfolio") == "portfolio"
    with pytest.raises(ConfigError, match="must be one of blend, portfolio"):
        check_kind("mean")
