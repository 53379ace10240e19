"""What is compiled once: settings that are floats, seeds and data are arguments of the program."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idiolect
from idiolect.algorithms.ditto import Ditto
from idiolect.algorithms.pfedme import PFedMe
from idiolect.graphs import ring
from idiolect.runtime.compiled import MOST, Skeleton, content, is_argument, once
from tests.federations import classification

COMPILED = "/jax/core/compile/backend_compile_duration"
SMALL = {"local_steps": 2, "batch_size": 4}
PFEDME = PFedMe(rate=0.1, inner_rate=0.1, prox_weight=2.0, inner_steps=2, **SMALL)


@pytest.fixture
def compilations():
    """Counts what XLA is asked to compile."""
    counted = []

    def listen(event, seconds, **_):
        if event == COMPILED:
            counted.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield counted
    jax.monitoring.unregister_event_duration_listener(listen)


def data_of(clients, features=5, more=0):
    """A federation whose shapes no other test has. more: further samples of each client."""
    rng = np.random.default_rng(clients)
    sizes = {f"c{i}": 20 + i + more for i in range(clients)}
    parts = {
        name: (rng.normal(size=(size, features)).astype("f4"), rng.integers(0, 3, size))
        for name, size in sizes.items()
    }
    return idiolect.data.from_arrays(parts)


def run(method, seed=0, data=None, **options):
    return idiolect.run(data, "mlr", method, rounds=4, cohort=3, eval_every=2, seed=seed, **options)


def test_other_floats_another_seed_and_the_same_again_compile_nothing(compilations):
    data = data_of(7)
    first = run(PFEDME, data=data)
    assert len(compilations) > 0
    compilations.clear()
    other = run(replace(PFEDME, rate=0.03, prox_weight=9.0), seed=1, data=data)
    again = run(PFEDME, data=data)
    assert compilations == []
    # What was shared is the program, not its numbers.
    assert again.scores("personal").loss.tolist() == first.scores("personal").loss.tolist()
    assert other.scores("personal").loss.tolist() != first.scores("personal").loss.tolist()


def test_some_more_samples_of_each_client_compile_nothing(compilations):
    """Training sets of 13 to 19 samples become ones of 13 to 20: the sizes that programs have stay the same."""
    small, large = data_of(11, features=9), data_of(11, features=9, more=1)
    assert small.train.sizes.max() < large.train.sizes.max()
    run(PFEDME, data=small)
    assert len(compilations) > 0
    compilations.clear()
    run(PFEDME, data=large)
    assert compilations == []


@pytest.mark.second
def test_a_number_that_is_switched_off_or_whole_is_another_program(compilations):
    data = data_of(6)
    run(PFEDME, data=data)
    for changed in (replace(PFEDME, local_steps=3), replace(PFEDME, tolerance=0.5)):
        compilations.clear()
        run(changed, data=data)
        assert len(compilations) > 0


@pytest.mark.second
def test_six_settings_that_differ_in_floats_compile_once_in_a_comparison(compilations):
    settings = [{"name": "ditto", "rate": 0.01 * (i + 1), "label": f"rate {i}", **SMALL} for i in range(6)]
    options = {"rounds": 4, "cohort": 3, "eval_every": 2, "quiet": True}
    idiolect.compare(data_of(8, features=6), "mlr", settings[:1], **options)
    alone = len(compilations)
    compilations.clear()
    comparison = idiolect.compare(data_of(9, features=6), "mlr", settings, **options)
    several = len(compilations)
    assert 0 < several <= alone + 2  # the counts of clients differ, so the small programs around the rounds may too
    assert len({line.loss.mean for line in comparison.lines if line.model == "personal"}) == 6


def test_what_is_an_argument():
    assert all(map(is_argument, (0.5, 3, -1.0, np.float32(0), np.zeros(2), jnp.zeros(()))))
    assert not any(map(is_argument, (0, 0.0, True, None, "sgd", jax.nn.relu)))


def test_a_skeleton_gives_back_the_tree_with_other_leaves():
    method = Ditto(rate=0.2, prox_weight=0.0, **SMALL)
    skeleton = Skeleton(method)
    assert skeleton.leaves(method) != []
    assert all(isinstance(leaf, float) for leaf in skeleton.leaves(replace(method, rate=1)))
    numbers = [10 * leaf for leaf in skeleton.leaves(method)]
    assert skeleton.filled(numbers).rate == 2.0
    assert skeleton.filled(numbers).prox_weight == 0.0
    assert skeleton.key == Skeleton(replace(method, rate=0.7)).key
    assert skeleton.key != Skeleton(replace(method, prox_weight=0.1)).key
    assert skeleton.key != Skeleton(replace(method, local_steps=9)).key


def test_content_is_equal_for_equal_content_alone():
    problem = classification()
    assert content(problem.objective.static) == content(classification().objective.static)
    assert content(np.arange(3)) == content(np.arange(3))
    assert content(np.arange(3)) != content(np.arange(3.0))
    assert content(1) != content(1.0)
    assert content({"a": [1, 2]}) != content({"a": (1, 2)})
    assert content(partial(max, 1)) == content(partial(max, 1)) != content(partial(max, 2))
    assert content(ring(5)) == content(ring(5)) != content(ring(6))
    unhashable = bytearray(b"x")
    assert content(unhashable) == content(unhashable) != content(bytearray(b"x"))


def test_programs_used_longest_ago_are_let_go():
    made = []
    for number in range(MOST + 1):
        once(("test", number), lambda number=number: made.append(number))
        once(("test", 0), lambda: made.append("again"))
    assert "again" not in made
    once(("test", 1), lambda: made.append("again"))
    assert made[-1] == "again"


class Shifted(eqx.Module):
    """A user's model with a constant: part of the program's key."""

    weight: jax.Array
    shift: float = eqx.field(static=True)

    def __call__(self, x):
        return self.weight @ x + self.shift * jnp.arange(3)


def test_a_users_model_with_other_constants_is_another_program():
    data = data_of(5)
    models = [Shifted(jnp.ones((3, 5)), shift) for shift in (0.0, 5.0)]
    losses = [
        idiolect.run(data, model, idiolect.FedAvg(rate=0.01, **SMALL), rounds=1).scores("global").loss.tolist()
        for model in models
    ]
    assert losses[0] != losses[1]
