"""An advice as a file: the same values come back, and what cannot be read is refused in one line."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.data import from_arrays
from idiolect.study.advice.advise import Advice, advise
from idiolect.study.advice.pieces import RACE
from idiolect.study.advice.stored import FILE, how_it_goes_on, is_advice, store_advice, stored_advice


@pytest.fixture(scope="module")
def advice() -> Advice:
    rng = np.random.default_rng(0)
    parts = {f"c{i}": (rng.normal(size=(12, 2)), rng.normal(size=12)) for i in range(3)}
    return advise(from_arrays(parts, task="regression"), methods=(), splits=2, rounds=1)


def test_it_comes_back_as_it_was(advice: Advice, tmp_path: Path) -> None:
    choice = replace(advice.choices[0], validation=(math.inf, -math.inf))
    changed = replace(advice, choices=(choice, *advice.choices[1:]))
    store_advice(changed, tmp_path)
    assert [math.isnan(line.accuracy) for line in advice.lines] == [True] * len(advice.lines)
    back = stored_advice(tmp_path)
    assert repr(back) == repr(changed)  # NaN, which numbers have no accuracy, is not equal to itself
    store_advice(back, tmp_path)
    assert repr(stored_advice(tmp_path)) == repr(changed)


def cut(plain: dict[str, Any]) -> str:
    return json.dumps(plain)[:-5]


def other_version(plain: dict[str, Any]) -> str:
    return json.dumps({**plain, "version": 3})


def without(*keys: str) -> Any:
    def damaged(plain: dict[str, Any]) -> str:
        place = plain
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]
        return json.dumps(plain)

    return damaged


def changed(value: Any, *keys: Any) -> Any:
    def damaged(plain: dict[str, Any]) -> str:
        place: Any = plain
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        return json.dumps(plain)

    return damaged


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut, "is damaged"),
        (lambda _: "[1]", "is damaged"),
        (lambda _: "", "is damaged"),
        (lambda _: "[" * 100_000, "is damaged"),
        (other_version, "has format 3, this version of idiolect reads 2"),
        (without("version"), "is damaged"),
        (without("advice", "about"), "is damaged (about: "),
        (changed("perhaps", "advice", "decision", "outcome"), "is damaged (decision.outcome: "),
        (changed("much", "advice", "lines", 0, "loss"), "is damaged (lines.0.loss: "),
        (changed("mocha", "advice", "decision", "method"), "is damaged (its parts do not fit together)"),
        (changed(["c0"], "advice", "about", "clients"), "is damaged (its parts do not fit together)"),
        (changed({}, "advice", "kept", "c1"), "is damaged (its parts do not fit together)"),
        (changed({}, "advice", "made"), "is damaged (its parts do not fit together)"),
        (changed(None, "advice", "lines", 1, "sent"), "is damaged (its parts do not fit together)"),
    ],
)
def test_a_damaged_file_is_refused(advice: Advice, tmp_path: Path, damage: Any, words: str) -> None:
    store_advice(advice, tmp_path)
    path = tmp_path / FILE
    path.write_text(damage(json.loads(path.read_text())))
    with pytest.raises(StoreError) as refused:
        stored_advice(tmp_path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_unfinished_one_says_how_it_goes_on(tmp_path: Path) -> None:
    assert not is_advice(tmp_path)
    assert not is_advice(Path("\0"))
    (tmp_path / RACE).mkdir()
    assert is_advice(tmp_path)
    with pytest.raises(StoreError, match="is not finished; ask again with the same settings"):
        stored_advice(tmp_path)
    (tmp_path / RACE / "question.json").write_text('{"command": "idiolect advise t.csv", "asked": {}}')
    assert how_it_goes_on(tmp_path).endswith("is not finished; continue with: idiolect advise t.csv")
    (tmp_path / FILE).touch()
    assert f"is finished; see: idiolect show {tmp_path}" in how_it_goes_on(tmp_path)
