"""Functions as lists of equations: run again they give the function's values, and a part needs only its part."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Literal

from idiolect.core.jaxpr import CALLS, Traced, evaluate, needed, numbers

CONSTANT = np.array([1.0, -2.0, 0.5], np.float32)
PARTS = (
    {"w": jnp.array([0.5, 1.5, -1.0]), "b": jnp.array(2.0)},
    [jnp.array([3.0, 0.25, 1.0])],
    jnp.array([1.0, 2.0, 4.0]),
)


def plain(chosen: Any, rest: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(chosen["w"] * x) + jnp.tanh(rest[0] @ x) * chosen["b"]


def with_constants(chosen: Any, rest: Any, x: jax.Array) -> jax.Array:
    return jnp.dot(jnp.asarray(CONSTANT) * x, rest[0]) + 2.0 * chosen["b"] - chosen["w"][1]


def with_calls(chosen: Any, rest: Any, x: jax.Array) -> jax.Array:
    layer = jax.jit(lambda w, h: jnp.maximum(w * h, 0) + jnp.asarray(CONSTANT))
    inner = jax.checkpoint(lambda w, h: layer(w, jnp.sin(h)))
    return jnp.sum(layer(chosen["w"], inner(rest[0], x))) + inner(chosen["w"], x)[0] * chosen["b"]


def with_a_loop(chosen: Any, rest: Any, x: jax.Array) -> jax.Array:
    h, _ = jax.lax.scan(lambda h, r: (h * r + chosen["w"], None), x, rest[0])
    return jnp.max(jax.lax.top_k(h, 2)[0]) + chosen["b"]  # equations of more than one result


def with_a_derivative(chosen: Any, rest: Any, x: jax.Array) -> jax.Array:
    square = jax.custom_jvp(lambda v: v * v)
    square.defjvps(lambda t, out, v: 3 * v * t)
    return jax.grad(lambda w: jnp.sum(square(w * x)))(chosen["w"])[2] + rest[0][0] * chosen["b"]


def untouched(chosen: Any, rest: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(rest[0] * x)


FUNCTIONS = [plain, with_constants, with_calls, with_a_loop, with_a_derivative, untouched]


def values_of(traced: Traced, parts: Any) -> dict[int, Any]:
    leaves = jax.tree.leaves(parts)
    return dict(zip([*traced.chosen, *traced.rest, *traced.x], leaves, strict=True)) | traced.consts


@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_steps_together_are_the_function(function: Callable[..., jax.Array]) -> None:
    shapes = jax.eval_shape(lambda *parts: parts, *PARTS)
    traced = Traced(function, *shapes)
    for scale in (1.0, -0.7):
        parts = jax.tree.map(lambda leaf, scale=scale: leaf * scale, PARTS)
        (output,) = evaluate(traced.steps, values_of(traced, parts), traced.outputs)
        np.testing.assert_allclose(output, function(*parts), rtol=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_needed_is_enough_and_no_step_of_it_can_go(function: Callable[..., jax.Array]) -> None:
    traced = Traced(function, *PARTS)
    steps, values = needed(traced.steps, traced.outputs)
    (output,) = evaluate(steps, values_of(traced, PARTS), traced.outputs)
    np.testing.assert_allclose(output, function(*PARTS), rtol=1e-6)
    assert steps == [step for step in traced.steps if step in steps]  # in the order of the function
    made = {number for step in steps for number in step.outputs}
    assert made <= values | made
    assert values >= numbers(traced.outputs)
    for left_out in range(len(steps)):
        rest = [*steps[:left_out], *steps[left_out + 1 :]]
        with pytest.raises(KeyError):
            evaluate(rest, values_of(traced, PARTS), traced.outputs)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_depends_on_the_chosen_part_and_on_the_sample(function: Callable[..., jax.Array]) -> None:
    """Against the definition: a value depends on a part if some step on the way to it reads the part."""
    traced = Traced(function, *PARTS)
    for roots, marked in ((traced.chosen, traced.touched), (traced.x, traced.varies)):
        for step in traced.steps:
            _, values = needed(traced.steps, step.outputs)
            assert {number in marked for number in step.outputs} == {bool(values & set(roots))}
        assert set(roots) <= marked
    assert traced.avals.keys() == traced.varies
    made = [number for step in traced.steps for number in step.outputs]
    computed = dict(zip(made, evaluate(traced.steps, values_of(traced, PARTS), made), strict=True))
    for number in traced.varies & computed.keys():
        assert traced.avals[number].shape == np.shape(computed[number])


def test_the_parts_are_numbered_apart() -> None:
    traced = Traced(plain, *PARTS)
    assert (len(traced.chosen), len(traced.rest), len(traced.x)) == (2, 1, 1)
    made = [number for step in traced.steps for number in step.outputs]
    everything = [*traced.chosen, *traced.rest, *traced.x, *traced.consts, *made]
    assert len(set(everything)) == len(everything)


def test_calls_are_opened_only_where_the_chosen_part_reaches_them() -> None:
    traced = Traced(with_calls, *PARTS)
    names: tuple[set[str], set[str]] = (set(), set())
    for step in traced.steps:
        names[not traced.touched.isdisjoint(step.outputs)].add(step.primitive.name)
    untouched, touched = names
    assert not CALLS & touched
    assert CALLS & untouched
    assert "max" in touched


def test_constants_have_no_number() -> None:
    assert numbers([3, Literal(1.0, jax.core.ShapedArray((), np.dtype("f4"))), 5, 3]) == {3, 5}
    traced = Traced(lambda chosen, rest, x: jnp.asarray(4.0), *PARTS)
    assert evaluate([], {}, traced.outputs) == [4.0]
    assert needed(traced.steps, traced.outputs) == ([], set())
