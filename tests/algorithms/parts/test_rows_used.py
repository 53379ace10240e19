"""How many rows enter a step and a message, compared with the batches that a client really draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts.rows_used import RowsUsed, of_batches, widest_rank
from idiolect.algorithms.registry import ALGORITHMS, build
from idiolect.core.random import permuted

SIZES = (1, 10, 21, 40, 178)


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("order", ["epoch", "cyclic"])
@pytest.mark.parametrize(("batch", "steps"), [(1, 1), (20, 1), (20, 2), (20, 5), (20, 20), (0, 3)])
def test_fixed_orders_use_no_fewer_rows_than_said(rows, order, batch, steps):
    used, messages = of_batches(rows, batch_size=batch, steps=steps, order=order), []
    if batch == 0:
        assert used == RowsUsed(rows, rows)
        return
    per_pass = -(-rows // batch)
    for round in range(per_pass):
        first = round * steps if order == "cyclic" else 0
        places = [
            range(((first + s) % per_pass) * batch, min(rows, ((first + s) % per_pass + 1) * batch))
            for s in range(steps)
        ]
        messages.append((min(map(len, places)), len({row for place in places for row in place})))
    assert min(message for _, message in messages) == used.message
    # A short batch counts unless the same message has all rows.
    assert used.step == min(batch, rows) if used.message == rows else min(step for step, _ in messages)


@pytest.mark.parametrize("rows", SIZES)
def test_fresh_draws_use_about_as_many_as_said(rows):
    used = of_batches(rows, batch_size=20, steps=5)
    drawn = [
        len(np.unique([permuted(jax.random.key(100 * t + s), jnp.arange(min(20, rows)), rows) for s in range(5)]))
        for t in range(10)
    ]
    assert used.step == min(20, rows)
    assert abs(np.mean(drawn) - used.message) < 0.06 * rows + 1


def test_passes_have_all_rows_and_no_steps_have_none():
    assert of_batches(178, batch_size=1, steps=1, epochs=2) == RowsUsed(1, 178)
    assert of_batches(178, batch_size=20, steps=0) == RowsUsed(0, 0)


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_method_that_sends_something_says_of_how_many_rows(name):
    method = build(name)
    used = method.rows_used(178)
    if method.sends:
        assert used is not None
        assert 0 < used.step <= used.message <= 178
        assert used.cell == (1 if name == "boosted-intercept" else None)


def test_one_row_per_step_is_seen_in_every_method_with_batches():
    seen = [name for name in ALGORITHMS if "batch_size" in ALGORITHMS[name].__dataclass_fields__]
    assert len(seen) > 20
    for name in seen:
        assert build({"name": name, "batch_size": 1}).rows_used(178).step == 1, name


@pytest.mark.parametrize(
    ("spec", "used"),
    [
        ({"name": "fedrep", "batch_size": 20, "body_steps": 1}, RowsUsed(20, 20)),
        ({"name": "fedrep", "body_steps": 0}, RowsUsed(0, 0)),
        ({"name": "fedrecon", "batch_size": 0}, RowsUsed(89, 89)),
        ({"name": "fedrecon", "batch_size": 0, "support": 1.0}, RowsUsed(1, 1)),
        ({"name": "fedrecon", "batch_size": 0, "split": "none"}, RowsUsed(178, 178)),
        ({"name": "fedavg-intercept", "solver": "newton", "batch_size": 1}, RowsUsed(178, 178)),
        ({"name": "fedavg-intercept", "solver": "auto", "batch_size": 1, "local_steps": 1}, RowsUsed(1, 1)),
        ({"name": "mocha"}, RowsUsed(178, 178)),
        ({"name": "pflego"}, RowsUsed(178, 178)),
        ({"name": "afl"}, RowsUsed(20, 20)),
    ],
)
def test_methods_with_a_rule_of_their_own(spec, used):
    assert build(spec).rows_used(178) == used


def test_the_widest_rank_is_that_of_a_matrix():
    tree = {"w": jnp.zeros((64, 30)), "v": jnp.zeros((2, 64)), "b": jnp.zeros(64), "k": jnp.zeros((8, 9, 3, 3))}
    assert widest_rank(tree) == 30
    assert widest_rank({"b": jnp.zeros(3)}) == 0
