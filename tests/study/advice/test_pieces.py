"""An advice that was stopped goes on from what it had finished, to the same bits."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.core.files import alone
from idiolect.data import from_arrays
from idiolect.study.advice import advise as module
from idiolect.study.advice.advise import Advice, advise
from idiolect.study.advice.pieces import RACE, Pieces, command_of, has_pieces, pieces_in
from idiolect.study.advice.race import Raced
from idiolect.study.advice.scored import Candidate
from idiolect.study.advice.together import side_by_side
from tests.tiers import second

QUESTION = {"splits": 2, "methods": {"local": [{"rate": 0.1}]}}


def ask(out: Path | None, rounds: int = 2, seed: int = 0) -> Advice:
    rng, parts = np.random.default_rng(seed), {}
    for i in range(3):
        x = rng.normal(size=(24, 2))
        parts[f"c{i}"] = x, (x[:, 0] + rng.normal(size=24) > 0).astype(int)
    return advise(from_arrays(parts), methods=("ditto",), splits=2, rounds=rounds, out=out, command="this")


@pytest.fixture
def raced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods that are raced from now on."""
    names: list[str] = []
    race = module.race

    def told(field: Any, contestant: Any, check: Any) -> Raced:
        names.append(contestant.name)
        return race(field, contestant, check)

    monkeypatch.setattr(module, "race", told)
    return names


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The races run one after the other, in order."""
    monkeypatch.setattr(module, "side_by_side", lambda work: side_by_side(work, workers=1))


def stopping(monkeypatch: pytest.MonkeyPatch, name: str, method: str) -> None:
    """Ctrl-C when a method's race begins, or when another step does."""
    real: Callable[..., Any] = getattr(module, name)

    def begins(*arguments: Any) -> Any:
        if not method or arguments[1].name == method:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(module, name, begins)


@pytest.mark.usefixtures("one_at_a_time")
@pytest.mark.parametrize(
    ("name", "method", "kept", "again"),
    [
        ("race", "fedavg", ["local", "regressions"], ["fedavg", "ditto"]),
        second("trees", "", ["ditto", "fedavg", "local", "regressions"], []),
        second("decide", "", ["ditto", "fedavg", "local", "regressions", "trees"], []),
    ],
)
def test_a_stopped_advice_goes_on_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raced: list[str], name: str, method: str, kept: list, again: list
) -> None:
    undisturbed = ask(None)
    with monkeypatch.context() as patched:
        stopping(patched, name, method)
        with pytest.raises(KeyboardInterrupt):
            ask(tmp_path / "a")
    assert sorted(path.stem for path in (tmp_path / "a" / RACE).glob("*.npz")) == kept
    assert command_of(tmp_path / "a") == "this"
    raced.clear()
    went_on = ask(tmp_path / "a")
    assert raced == again
    assert replace(went_on, made=undisturbed.made) == undisturbed
    raced.clear()
    assert replace(ask(tmp_path / "a"), made=undisturbed.made) == undisturbed
    assert raced == []


def test_before_the_first_piece_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping(monkeypatch, "regressions", "")
    with pytest.raises(KeyboardInterrupt):
        ask(tmp_path / "new" / "a")
    assert not (tmp_path / "new").exists()
    (tmp_path / "there").mkdir()
    with pytest.raises(KeyboardInterrupt):
        ask(tmp_path / "there")
    assert not list((tmp_path / "there").iterdir())


def test_an_error_that_no_piece_helps_leaves_nothing(tmp_path: Path) -> None:
    with pieces_in(tmp_path / "a", QUESTION, "this") as pieces:
        pieces.bars("trees", list)

    def fails() -> list[Candidate]:
        raise ConfigError("scale the features")

    for folder in ("a", "new"):
        with pytest.raises(ConfigError), pieces_in(tmp_path / folder, QUESTION, "this") as pieces:
            pieces.raced("local", fails)  # pyright: ignore[reportArgumentType]
        assert not (tmp_path / folder / RACE).exists()
    assert not (tmp_path / "new").exists()


@pytest.mark.second
def test_pieces_of_another_question_are_refused_and_stay(tmp_path: Path) -> None:
    ask(tmp_path / "a")
    before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match=r"another question \(changed: rounds\); use another --out"):
        ask(tmp_path / "a", rounds=3)
    with pytest.raises(StoreError, match=r"\(changed: data, methods\)"):  # safe rates follow from the rows
        ask(tmp_path / "a", seed=1)
    assert {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()} == before


def test_pieces_whose_question_is_lost_are_refused(tmp_path: Path) -> None:
    with pieces_in(tmp_path, QUESTION, "this") as pieces:
        pieces.bars("trees", list)
    (tmp_path / RACE / "question.json").write_text("{")
    assert command_of(tmp_path) == ""
    with pytest.raises(StoreError, match="another question"), pieces_in(tmp_path, QUESTION, "this"):
        pass


def test_two_processes_do_not_share_a_folder_and_one_of_runs_is_none_of_an_advice(tmp_path: Path) -> None:
    (tmp_path / RACE).mkdir()
    with (
        alone(tmp_path / RACE / ".lock", ""),
        pytest.raises(StoreError, match="another idiolect process works in"),
        pieces_in(tmp_path, QUESTION, "this"),
    ):
        pass
    (tmp_path / "idiolect.sqlite").touch()
    with pytest.raises(StoreError, match="holds runs; use another --out"), pieces_in(tmp_path, QUESTION, "this"):
        pass


@pytest.mark.parametrize("damage", [b"", b"PK", b"no archive"])
def test_a_piece_that_cannot_be_read_is_computed_again(tmp_path: Path, damage: bytes) -> None:
    rows = (np.array([0.1, 1 / 3]), np.array([np.inf, 2.0]))
    made = [
        Candidate("own guess", "baseline", rows, rows, (np.array([True]), np.array([False]))),
        Candidate("ridge", "baseline", rows, rows),
    ]

    def never() -> list[Candidate]:
        raise AssertionError

    pieces = Pieces(tmp_path)
    pieces.bars("regressions", lambda: made)
    for one, other in zip(pieces.bars("regressions", never), made, strict=True):
        assert (one.name, one.kind, one.right is None) == (other.name, other.kind, other.right is None)
        for part in ("validation", "test", "right"):
            for a, b in zip(getattr(one, part) or (), getattr(other, part) or (), strict=True):
                np.testing.assert_array_equal(a, b, strict=True)
    (piece,) = tmp_path.glob("*.npz")
    piece.write_bytes(piece.read_bytes()[:-40] if damage == b"PK" else damage)
    with pytest.raises(AssertionError):
        pieces.bars("regressions", never)
    assert pieces.bars("regressions", lambda: made) is made
    assert len(pieces.bars("regressions", never)) == 2


def test_without_a_folder_nothing_is_kept() -> None:
    with pieces_in(None, QUESTION, "") as pieces:
        assert pieces.bars("trees", list) == []


def test_the_question_says_what_the_pieces_follow_from(tmp_path: Path) -> None:
    with pieces_in(tmp_path, QUESTION, "this") as pieces:
        assert not has_pieces(tmp_path)
        pieces.bars("trees", list)
    stored = json.loads((tmp_path / RACE / "question.json").read_text())
    assert stored == {"command": "this", "asked": {"version": 2, **QUESTION}}
    assert has_pieces(tmp_path)
