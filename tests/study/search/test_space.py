"""Spaces: what a text means, and what is refused before anything runs."""

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.study.search.space import axis, drawn, grid, space_of


def test_texts_are_values_and_intervals():
    assert axis("k", "1,5,15").values == (1, 5, 15)
    assert axis("k", "log(0.001,1,4)").values == (0.001, 0.01, 0.1, 1.0)
    assert axis("k", "linear(0,1,5)").values == (0, 0.25, 0.5, 0.75, 1)
    interval = axis("k", "loguniform(0.01,1)")
    assert (interval.low, interval.high, interval.log, interval.values) == (0.01, 1, True, ())
    draws = np.array([interval.draw(np.random.default_rng(i)) for i in range(400)])
    assert draws.min() >= 0.01
    assert draws.max() <= 1
    assert abs(np.mean(draws < 0.1) - 0.5) < 0.1  # even in the logarithm
    assert all(float(f"{draw:.6g}") == draw for draw in draws)  # a table that shows six digits shows what ran


def test_whole_numbers_from_one_to_another_are_values():
    assert space_of("pfedme", {"inner_steps": "integer(3,6)"})["inner_steps"].values == (3, 4, 5, 6)


def test_a_grid_is_every_combination_and_a_draw_is_some_of_them():
    space = space_of("pfedme", {"prox_weight": "1,5,15", "inner_steps": [5, 10]})
    every = grid(space)
    assert len({tuple(v.values()) for v in every}) == len(every) == 6
    some = drawn(space, 4, seed=3)
    assert len({tuple(v.values()) for v in some}) == 4
    assert all(v in every for v in some)
    assert some == drawn(space, 4, seed=3)
    assert drawn(space_of("fedavg", {"rate": "uniform(0,1)"}), 3, 1) != drawn(
        space_of("fedavg", {"rate": "uniform(0,1)"}), 3, 2
    )


@pytest.mark.parametrize(
    ("method", "given", "words"),
    [
        ("pfedme", {"prox_wieght": "1"}, "did you mean 'prox_weight'"),
        ("pfedmee", {}, "did you mean 'pfedme'"),
        ("pfedme", {"rate": "lgo(1,2,3)"}, "did you mean 'log'"),
        ("pfedme", {"rate": "log(0,1,3)"}, "logarithmic scale starts above 0"),
        ("pfedme", {"rate": "log(0.1,1)"}, "write log"),
        ("pfedme", {"rate": "linear(2,1,3)"}, "must be below"),
        ("pfedme", {"rate": "linear(1,2,1)"}, "n must be a whole number from 2 to 10,000"),
        ("pfedme", {"rate": "log(1,2,1000000000000)"}, "n must be a whole number from 2 to 10,000"),
        ("pfedme", {"local_steps": "integer(1,1000000000)"}, "these are more than 10,000 values"),
        ("pfedme", {"rate": f"log(1,{'9' * 400},3)"}, "with numbers"),
        ("pfedme", {"rate": "1,1"}, "given twice"),
        ("pfedme", {"rate": []}, "no value"),
        ("pfedme", {"inner_steps": "uniform(1,5)"}, r"whole number; give 5,10,20 or integer\(5,20\)"),
        ("pfedme", {"inner_steps": "integer(1.5,5)"}, "both ends must be whole numbers"),
    ],
)
def test_what_is_wrong_is_named(method, given, words):
    with pytest.raises(ConfigError, match=words):
        space_of(method, given)


def test_intervals_have_no_grid_and_a_grid_has_an_end():
    with pytest.raises(ConfigError, match="only a random search"):
        grid(space_of("fedavg", {"rate": "uniform(0,1)"}))
    with pytest.raises(ConfigError, match="there are only 2"):
        drawn(space_of("fedavg", {"rate": "0.1,0.2"}), 3)
