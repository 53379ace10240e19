from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import idiolect
from idiolect.core.errors import ConfigError, StoreError
from idiolect.data.federated import FederatedData
from idiolect.study.advice.blend import likelihoods, weights
from idiolect.study.combine.combined import Kind
from idiolect.study.combine.make import Made, make_combined, of_one_cell
from idiolect.study.run.resolve import Workbench
from idiolect.study.store.store import Store
from tests.study.combine.conftest import compared

Runs = tuple[Path, FederatedData]


def made(folder: Path, data: FederatedData | None, kind: Kind = "blend", **which: object) -> Made:
    with Store(folder, create=False) as store:
        return make_combined(store, Workbench(data=data), kind, **which)  # pyright: ignore[reportArgumentType]


def losses_by_hand(found: Made, data: FederatedData, part: str) -> np.ndarray:
    """(methods, rows): each method's loss of each row, from its probabilities or numbers."""
    rows = data.stored(part)
    names = np.asarray(data.clients, object)[rows.owners]
    predicted = [source.predicted(rows.x, names) for source in found.combined.sources.values()]
    if data.task == "regression":
        return np.stack([(one[:, 0] - rows.y) ** 2 for one in predicted])
    return np.stack([-np.log(one[np.arange(len(rows.y)), rows.y]) for one in predicted])


@pytest.mark.second
def test_a_blend_has_the_weights_of_the_advice(runs: Runs) -> None:
    folder, data = runs
    found = made(folder, data)
    losses = losses_by_hand(found, data, "validation")
    owners = data.stored("validation").owners
    expected = weights(likelihoods(losses, data.task == "classification"), owners, data.num_clients)
    np.testing.assert_allclose(found.combined.weights.to_numpy(), expected, atol=1e-9)
    np.testing.assert_allclose(found.combined.weights.sum(axis=1), 1)
    assert list(found.combined.weights.index) == list(data.clients)
    assert found.combined.content.rows == data.validation.count
    assert list(found.combined.content.others.values()) == pytest.approx(expected.mean(axis=0).tolist(), abs=1e-9)
    assert found.combined.path == folder / "models" / "wards" / "blend" / "seed0" / "combined.json"


@pytest.mark.second
def test_a_portfolio_is_one_method_for_each_client(runs: Runs) -> None:
    found = made(*runs, "portfolio").combined
    assert {*found.weights.to_numpy().ravel().tolist()} <= {0.0, 1.0}
    assert (found.weights.sum(axis=1) == 1).all()


def test_the_table_has_the_scores_of_test_rows(runs: Runs) -> None:
    folder, data = runs
    found = made(folder, data)
    losses = losses_by_hand(found, data, "test").mean(axis=1)
    column = "test log-loss" if data.task == "classification" else "test RMSE"
    expected = losses if data.task == "classification" else data.label_scale * np.sqrt(losses)
    assert found.table["model"].tolist() == ["local", "fedavg", "fedavg-ft", "blend"]
    assert found.table[column].tolist()[:3] == pytest.approx(expected.tolist(), rel=1e-9)


@pytest.mark.parametrize("kind", ["blend", "portfolio"])
def test_labels_of_test_rows_change_no_weight(kind: Kind, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, data = runs
    before = made(folder, data, kind)
    test = data.stored("test")
    other = replace(data, test=replace(test, y=test.y[::-1].copy()))
    monkeypatch.setattr(Store, "check", lambda *_: None)  # it would refuse changed data
    after = made(folder, other, kind)
    assert after.combined.content == before.combined.content
    assert not after.table.equals(before.table)


def test_what_cannot_be_combined_is_refused_in_one_line(tmp_path: Path) -> None:
    def refused(error: type[Exception], data: FederatedData | None, folder: Path, **which: object) -> str:
        with pytest.raises(error) as found:
            made(folder, data, **which)  # pyright: ignore[reportArgumentType]
        assert "\n" not in str(found.value)
        return str(found.value)

    data = compared("classification", tmp_path / "a")
    assert "give them: idiolect.combine(folder, data)" in refused(ConfigError, None, tmp_path / "a")
    assert "no finished run of cell other" in refused(StoreError, data, tmp_path / "a", cell="other")
    assert "no finished run with seed 7" in refused(StoreError, data, tmp_path / "a", seed=7)
    changed = replace(data, train=replace(data.stored("train"), x=data.stored("train").x + 1))
    assert "have changed" in refused(StoreError, changed, tmp_path / "a")
    bare = idiolect.data.from_arrays(
        {name: (np.ones((8, 2)), np.resize([0, 1], 8)) for name in ("a", "b")}, validation=0.0
    )
    pair = [{"name": "local"}, {"name": "fedavg"}]
    idiolect.compare(bare, "mlr", pair, rounds=1, out=tmp_path / "b", quiet=True)
    assert "no client has validation rows" in refused(ConfigError, bare, tmp_path / "b")
    idiolect.compare(data, "mlr", pair[:1], rounds=1, rate="method", out=tmp_path / "c", quiet=True)
    assert "only one finished method" in refused(ConfigError, data, tmp_path / "c")
    assert not list(tmp_path.rglob("combined.json"))


RUNS = [("a", 1, "a1 one"), ("a", 1, "a1 two"), ("a", 0, "a0"), ("b", 0, "b0")]


def test_the_first_seed_of_one_cell_is_taken() -> None:
    def chosen(cell: str, seed: int | None) -> tuple[str, list[str]]:
        return of_one_cell(RUNS, ["a", "b"], cell, seed, "'here' holds", "models")

    assert chosen("a", None) == ("a", ["a1 one", "a1 two"])
    assert chosen("a", 0) == ("a", ["a0"])
    assert chosen("", 1) == ("a", ["a1 one", "a1 two"])
    with pytest.raises(ConfigError, match=r"'here' holds several cells \(a, b\); name one with --cell"):
        chosen("", None)
    with pytest.raises(StoreError, match="'here' holds no models of cell b with seed 1; it has the cells a, b"):
        chosen("b", 1)
