from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data import from_arrays
from idiolect.runtime.program import Program
from idiolect.study.advice import race as module
from idiolect.study.advice.contestants import HALF, L2, STEPS, Contestant, contestants
from idiolect.study.advice.draws import Draws, again
from idiolect.study.advice.race import QUICK, Field, Raced, field_of, race
from idiolect.study.run.rates import safe_rate
from idiolect.study.run.rounds import looked_at
from tests.engine import devices_flags, python
from tests.two_races import METHODS

ROUNDS = 4


@pytest.fixture(scope="module")
def field() -> Field:
    rng = np.random.default_rng(0)
    parts = {}
    for i in range(3):
        x = rng.normal(size=(16, 2))
        parts[f"c{i}"] = (x, 100 + 5 * x @ rng.normal(size=2) + rng.normal(size=16))
    return field_of(Draws(again(from_arrays(parts, task="regression")), 2), None)


def runner(field: Field, name: str) -> tuple[Contestant, Raced]:
    data = field.draws.first
    one = next(c for c in contestants((name,), data, safe_rate(data, True), ROUNDS) if c.name == name)
    return one, race(field, one)


def descent(x: np.ndarray, y: np.ndarray, rate: float, l2: float, steps: int) -> np.ndarray:
    """Gradient descent from 0 on mean((zw - y)^2) / 2 + l2 |w|^2 / 2, z = (x, 1), in double precision."""
    z, w = np.concatenate([x, np.ones((len(x), 1))], axis=1).astype(np.float64), np.zeros(x.shape[1] + 1)
    for _ in range(steps):
        w -= rate * (z.T @ (z @ w - y) / len(z) + l2 * w)
    return w


def loss_of(w: list[np.ndarray], data: object, part: str) -> tuple[float, np.ndarray]:
    outputs = []
    for client, one in enumerate(w):
        x, _ = data.stored(part).client(client)  # type: ignore[attr-defined]
        outputs.append(x.astype(np.float64) @ one[:-1] + one[-1])
    output = np.concatenate(outputs)
    return float(np.mean((output - data.stored(part).y) ** 2)), output  # type: ignore[attr-defined]


def test_the_choice_is_the_best_on_validation_of_all_settings_and_rounds(field: Field) -> None:
    one, raced = runner(field, "local")
    for draw, data in enumerate(field.draws.data):
        tried = {}
        for place, setting in enumerate(one.settings):
            for round in looked_at(ROUNDS):
                rows = [data.stored("train").client(i) for i in range(3)]
                w = [descent(x, y, setting["rate"], setting[L2], STEPS * round) for x, y in rows]
                tried[place, round] = (loss_of(w, data, "validation")[0], w)
        (place, round), (least, w) = min(tried.items(), key=lambda item: item[1][0])
        assert raced.choice.validation[draw] == pytest.approx(least, rel=1e-4)
        assert raced.choice.settings[draw] == one.settings[place]
        assert raced.choice.rounds[draw] == round
        np.testing.assert_allclose(raced.outputs[draw]["test"], loss_of(w, data, "test")[1], rtol=1e-3, atol=1e-4)
    assert raced.choice.diverged == 0
    assert raced.choice.sent == (0, 0)


@pytest.mark.second
def test_only_races_on_few_rows_are_compiled_quickly(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []

    class Seen(Program):
        def __init__(self, *given: Any, quick: bool, **options: Any) -> None:
            told.append(quick)
            super().__init__(*given, quick=quick, **options)

    monkeypatch.setattr(module, "Program", Seen)
    for most in (QUICK, field.draws.first.train.count, field.draws.first.train.count - 1):
        monkeypatch.setattr(module, "QUICK", most)
        runner(field, "local")
    assert told == [True, True, False]


def test_the_worse_half_of_the_settings_stops_half_way(field: Field) -> None:
    """The slow ones without a penalty would overtake the fast ones, which the penalty holds back, after that."""
    good = contestants(("local",), field.draws.first, 0.1, 14)[0]
    pairs = [(0.015, 0.0), (0.3, 0.4), (0.017, 0.0), (0.3, 0.42)]
    one = replace(good, settings=tuple({**good.settings[0], "rate": rate, L2: l2} for rate, l2 in pairs))
    raced, overtaken = race(field, one), 0
    for draw, data in enumerate(field.draws.data):
        rows = [data.stored("train").client(i) for i in range(3)]
        losses = {
            round: [
                loss_of([descent(x, y, rate, l2, STEPS * round) for x, y in rows], data, "validation")[0]
                for rate, l2 in pairs
            ]
            for round in looked_at(14)
        }
        left = np.argsort(losses[HALF])[:2]
        overtaken += min(losses[14]) < min(losses[14][place] for place in left)
        least = min([*(loss for round in losses if round <= HALF for loss in losses[round]),
                     *(losses[14][place] for place in left)])  # fmt: skip
        assert raced.choice.validation[draw] == pytest.approx(least, rel=1e-4)
    assert overtaken > 0


def test_it_ends_where_the_loss_no_longer_falls_but_not_before_the_round_in_which_half_stops(field: Field) -> None:
    """With a rate of 0 nothing ever falls: rounds are looked at until `HALF`. A method may ask for more of them."""
    good = contestants(("local",), field.draws.first, 0.1, 60)[0]
    for settling, expected in ((0, HALF), (14, 14)):
        checks: list[bool] = []
        one = replace(good, settings=({**good.settings[0], "rate": 1e-12},), settling=settling)
        race(field, one, lambda checks=checks: checks.append(True))
        assert len(checks) == looked_at(60).index(expected) + 1


def test_it_ends_by_the_mean_over_the_divisions(field: Field) -> None:
    good = contestants(("local",), field.draws.first, 0.1, 60)[0]
    one, looks = replace(good, settings=({**good.settings[0], "rate": 0.3, L2: 0.2},)), looked_at(60)
    losses = np.empty((len(looks), field.draws.count))
    for draw, data in enumerate(field.draws.data):
        rows = [data.stored("train").client(i) for i in range(3)]
        for place, round in enumerate(looks):
            losses[place, draw] = loss_of(
                [descent(x, y, 0.3, 0.2, STEPS * round) for x, y in rows], data, "validation"
            )[0]
    best = np.minimum.accumulate(losses)
    still = np.array([best[k].sum() >= 0.999 * best[k - 1].sum() for k in range(1, len(looks))])
    ends = next(k + 1 for k in range(1, len(still)) if still[k - 1 : k + 1].all() and looks[k + 1] >= HALF)
    assert ends + 1 < len(looks)
    checks: list[bool] = []
    race(field, one, lambda: checks.append(True))
    assert len(checks) == ends + 1


def test_what_the_check_raises_ends_the_race(field: Field) -> None:
    def stops() -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        race(field, contestants((), field.draws.first, 0.1, ROUNDS)[0], stops)


def test_a_shared_model_is_one_for_all_and_costs_its_size_both_ways(field: Field) -> None:
    _, raced = runner(field, "fedavg")
    assert raced.choice.sent == (12, 12)  # two weights and a bias of four bytes
    data = field.draws.first
    x = np.concatenate([data.stored("test").x, np.ones((data.test.count, 1))], axis=1)
    _, residual, *_ = np.linalg.lstsq(x, raced.outputs[0]["test"], rcond=None)
    assert float(residual.sum()) < 1e-8


def test_a_run_that_diverges_is_never_chosen(field: Field) -> None:
    good = contestants((), field.draws.first, 0.1, ROUNDS)[0]
    wild = Contestant("local", "alone", "local", (*good.settings[:1], {**good.settings[0], "rate": 1e30}), ROUNDS)
    raced = race(field, wild)
    assert raced.choice.diverged == field.draws.count
    assert all(setting == wild.settings[0] for setting in raced.choice.settings)
    assert np.isfinite(raced.choice.validation).all()


def test_models_of_the_zoo_are_built_and_unknown_ones_refused(field: Field) -> None:
    assert field.linear
    assert not field_of(field.draws, {"name": "mlp", "hidden": [3]}).linear
    with pytest.raises(ConfigError, match="mlpp"):
        field_of(field.draws, "mlpp")


EXCHANGES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")


@pytest.mark.second
def test_two_devices_compile_each_method_once_and_never_wait_for_each_other(tmp_path: Path) -> None:
    """Two threads whose devices exchange something can each hold one device and wait for the other for ever."""
    flags = f"{devices_flags(2)} --xla_dump_to={tmp_path} --xla_dump_hlo_as_text"
    done = python("-m", "tests.two_races", XLA_FLAGS=flags, IDIOLECT_CACHE="", JAX_ENABLE_COMPILATION_CACHE="false")
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(METHODS)
    programs = {file.name: file.read_text() for file in tmp_path.glob("*after_optimizations.txt")}
    assert not [name for name, text in programs.items() if any(f" {word}" in text for word in EXCHANGES)]
    mapped = [name for name in programs if "jit_mapped" in name]
    assert len(mapped) == 2 * len(METHODS)  # the rounds, the scores with their models
