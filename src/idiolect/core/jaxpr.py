"""A traced function as a list of equations, any part of which can be evaluated by itself.

The function can be any that JAX can trace.

Source: "Writing custom Jaxpr interpreters in JAX", docs.jax.dev.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, Literal, Primitive
from jaxtyping import Array, PyTree

# Such calls are inlined, so that the equations of a compiled or rematerialised layer are seen one by one.
CALLS = {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"}

Value = int | Literal  # the number of a computed value, or a literal constant


class Step(NamedTuple):
    """One equation of the traced function; its inputs and outputs are value numbers."""

    primitive: Primitive
    params: Mapping[str, Any]
    inputs: tuple[Value, ...]
    outputs: tuple[int, ...]


class Traced:
    """The equations of function(chosen, rest, x), and which values depend on `chosen` and on `x`.

    Calls whose inputs depend on `chosen` are inlined. chosen, rest, x: arrays or shapes, as `jax.make_jaxpr` takes
    them; the attributes of these names hold the value numbers of their leaves.
    """

    def __init__(self, function: Callable[..., Array], chosen: PyTree, rest: PyTree, x: PyTree) -> None:
        traced: ClosedJaxpr = jax.make_jaxpr(function)(chosen, rest, x)
        self._number = count()
        self.chosen, self.rest, self.x = (
            [next(self._number) for _ in jax.tree.leaves(part)] for part in (chosen, rest, x)
        )
        self.touched, self.varies = set(self.chosen), set(self.x)  # values that depend on chosen, on x
        self.avals: dict[int, Any] = dict(zip(self.x, jax.tree.leaves(x), strict=True))  # of the values in `varies`
        self.consts: dict[int, Any] = {}
        self.steps: list[Step] = []
        self.outputs = self._sort(traced.jaxpr, traced.consts, [*self.chosen, *self.rest, *self.x])

    def _sort(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        """Append a jaxpr's equations to the steps, inlining calls; record dependencies; return its outputs."""
        known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))
        for variable, constant in zip(jaxpr.constvars, consts, strict=True):
            known[variable] = number = next(self._number)
            self.consts[number] = constant

        def look_up(atom: Any) -> Value:
            return atom if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            read = [look_up(atom) for atom in equation.invars]
            touched = not self.touched.isdisjoint(numbers(read))
            if touched and equation.primitive.name in CALLS:
                inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
                opened = (inner.jaxpr, inner.consts) if isinstance(inner, ClosedJaxpr) else (inner, ())
                known.update(zip(equation.outvars, self._sort(*opened, read), strict=True))
                continue
            written = [next(self._number) for _ in equation.outvars]
            known.update(zip(equation.outvars, written, strict=True))
            self.steps.append(Step(equation.primitive, equation.params, tuple(read), tuple(written)))
            self.touched.update(written if touched else ())
            if not self.varies.isdisjoint(numbers(read)):
                self.varies.update(written)
                self.avals.update(zip(written, (atom.aval for atom in equation.outvars), strict=True))
        return [look_up(atom) for atom in jaxpr.outvars]


def numbers(values: Iterable[Value]) -> set[int]:
    """The value numbers among the values; literals are left out."""
    return {value for value in values if isinstance(value, int)}


def needed(steps: Sequence[Step], wanted: Iterable[Value]) -> tuple[list[Step], set[int]]:
    """The steps that `wanted` depends on, in order, and the numbers of every value they read or `wanted` names."""
    needed_steps, values = list[Step](), numbers(wanted)
    for step in reversed(steps):
        if not values.isdisjoint(step.outputs):
            needed_steps.append(step)
            values |= numbers(step.inputs)
    return needed_steps[::-1], values


def evaluate(steps: Sequence[Step], values: dict[int, Any], wanted: Sequence[Value]) -> list[Any]:
    """Evaluate the steps in order and return the wanted values; `values` holds the known ones and is updated."""

    def read(value: Value) -> Any:
        return value.val if isinstance(value, Literal) else values[value]

    for step in steps:
        # Some releases of JAX return (functions, params), others put the functions among the params.
        bound: Any = step.primitive.get_bind_params(dict(step.params))
        functions, params = bound if isinstance(bound, tuple) else ((), bound)
        results = step.primitive.bind(*functions, *map(read, step.inputs), **params)
        values.update(zip(step.outputs, results if step.primitive.multiple_results else [results], strict=True))
    return [read(value) for value in wanted]
