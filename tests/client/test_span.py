"""Steps in the span of the samples against the same steps on the weights."""

from dataclasses import replace
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedprox import FedProx
from idiolect.algorithms.parts.solvers import LINEAR, minimise, sgd
from idiolect.algorithms.pfedme import PFedMe
from idiolect.algorithms.scaffold import Scaffold
from idiolect.client import span
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.models.dense import MLP, MultinomialLogistic
from idiolect.runtime.simulate import Simulation
from tests.federations import bits, client_of, federation, flat, run, split_of
from tests.tiers import second

KEY = jax.random.key(3)
INPUTS, CLASSES = 700, 6
SIZES = (40, 1, 300, 7)  # the third client fills two tiles, the others a part of one


class Turned(eqx.Module):
    """Weights stored as (inputs, outputs), behind a compiled layer on scaled samples; a bias that does not train."""

    weight: jax.Array
    last: jax.Array
    shift: int = 3

    def __call__(self, x):
        return self.last @ jnp.tanh(jax.jit(lambda w: (x / 2 + self.shift) @ w)(self.weight))


class Reads(eqx.Module):
    """After the first layer, the sample is seen again, and so is a parameter that meets it alone."""

    first: jax.Array
    scale: jax.Array
    second: jax.Array

    def __call__(self, x):
        return self.second @ jnp.tanh(self.first @ x) + x[:6] * self.scale


def normal(*shape):
    return jnp.asarray(np.random.default_rng(len(shape)).normal(size=shape) / 10)


MODELS = {
    "mlr": lambda: MultinomialLogistic(INPUTS, CLASSES, key=KEY),
    "mlp": lambda: MLP(INPUTS, (8, 5), CLASSES, key=KEY),
    "wide": lambda: MLP(INPUTS, (60,), CLASSES, key=KEY),
    "turned": lambda: Turned(normal(INPUTS, 9), normal(CLASSES, 9)),
    "reads": lambda: Reads(normal(8, INPUTS), jnp.ones(()), normal(CLASSES, 8)),
}


def data_of(dtype=np.float64):
    rng = np.random.default_rng(0)
    teacher = rng.normal(size=(INPUTS, CLASSES))
    parts = []
    for size in SIZES:
        x = rng.normal(size=(size, INPUTS))
        x[size // 2] = x[0]  # two equal samples: the Gram matrix is singular
        parts.append((x.astype(dtype), (x @ teacher).argmax(axis=1).astype(np.int32)))
    return federation(split_of(parts), task="classification", classes=tuple("abcdef"))


def problem_of(name, l2=0.0):
    model = jax.tree.map(lambda a: a.astype(np.float64) if eqx.is_inexact_array(a) else a, MODELS[name]())
    return data_of(), objective_of(model, "classification", l2), eqx.filter(model, eqx.is_inexact_array)


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """Small layers count too, and 256 rows make a tile."""
    monkeypatch.setattr(span, "SMALLEST", 1)
    monkeypatch.setattr(span, "ROWS", 256)


@pytest.fixture
def plainly(monkeypatch):
    """A call that makes the steps on the weights from here on."""
    return lambda: monkeypatch.setattr(span, "SMALLEST", 10**12)


def entered(client, points, batch=None, steps=500, fixed=None):
    """The problem, and whether it is in the span of the samples."""
    got = span.problem(client, points, batch, steps=steps, fixed=fixed)
    return got, any(isinstance(leaf, span.InSpan) for leaf in jax.tree.leaves(got.points[0], is_leaf=is_in_span))


def is_in_span(leaf):
    return isinstance(leaf, span.InSpan)


@cache
def both_ways(name, which, batch_size):
    """A model's problem, and a compiled call for any of its clients: steps in the span, steps on the weights."""
    problem = problem_of(name, l2=0.3)

    @eqx.filter_jit
    def ends(client, start, anchor):
        batch = client.draw(KEY, batch_size) if batch_size else None
        found, inside = entered(client, (start, anchor), batch)
        assert inside

        def descend(points, gradient):
            def slope(p):
                return tree.add_scaled(gradient(p), 0.7, tree.subtract(p, points[1]))

            return minimise(slope, points[0], rate=0.05, steps=30, which=which)

        apart = found.restore(descend(found.points, found.gradient))
        return apart, descend((start, anchor), lambda p: client.grad(p, batch)), found.restore(found.points[1])

    return problem, ends


@pytest.mark.parametrize(
    ("name", "which"),
    [*((name, "sgd") for name in MODELS), ("mlp", LINEAR[1]), *(second("mlp", which) for which in LINEAR[2:])],
)
@pytest.mark.parametrize(("index", "batch_size"), [(0, 0), second(1, 0), second(2, 0), (2, 6), second(3, 6)])
def test_the_steps_are_the_same(x64, name, which, index, batch_size):
    (data, objective, start), ends = both_ways(name, which, batch_size)
    anchor = jax.tree.map(lambda a: a + 0.1 * np.cos(np.arange(a.size)).reshape(a.shape), start)
    apart, plain, kept = ends(client_of(data, objective, index), start, anchor)
    np.testing.assert_allclose(flat(apart), flat(plain), atol=1e-12)
    np.testing.assert_array_equal(flat(kept), flat(anchor))
    assert np.abs(flat(plain) - flat(start)).max() > 0.01


def test_a_part_of_the_model_with_the_rest_held(x64):
    data, objective, params = problem_of("mlp")
    body, head = eqx.tree_at(lambda m: m.layers[-1], params, None), eqx.filter(params, False)
    head = eqx.tree_at(lambda m: m.layers[-1], head, params.layers[-1], is_leaf=lambda leaf: leaf is None)
    client = client_of(data, objective, 2)

    @eqx.filter_jit
    def stepped(client, body, head):
        found, inside = entered(client, (body,), steps=50, fixed=head)
        assert inside
        moved = found.restore(tree.add_scaled(found.points[0], -1.0, found.gradient(found.points[0])))
        return moved, tree.add_scaled(body, -1.0, client.full_value_and_grad(body, head)[1])

    moved, expected = stepped(client, body, head)
    np.testing.assert_allclose(flat(moved), flat(expected), atol=1e-13)


class Twice(Reads):
    def __call__(self, x):
        return self.second @ jnp.tanh(self.first @ x) + self.first[:6] @ x


class Prepared(Reads):
    def __call__(self, x):
        return self.second @ jnp.tanh(self.first @ (x * self.scale))


class Deep(Reads):
    def __call__(self, x):
        return self.second @ jnp.tanh(self.first @ jnp.sort(x[:3, None] @ x[None], axis=0)[0])


class Halved(Reads):
    def __call__(self, x):
        return self.second @ (self.first.astype(jnp.float16) @ x.astype(jnp.float16)).astype(x.dtype)


@pytest.mark.parametrize("model", [Twice, Prepared, Halved])
def test_a_layer_that_is_not_at_the_entrance_is_left_alone(x64, model):
    params = model(normal(8, INPUTS), jnp.ones(()), normal(CLASSES, 8))
    objective = objective_of(params, "classification")
    assert not entered(client_of(data_of(), objective, 0), (params,))[1]


def test_what_comes_before_the_layer_may_be_anything_without_parameters(x64):
    params = Deep(normal(8, INPUTS), jnp.ones(()), normal(CLASSES, 8))
    assert entered(client_of(data_of(), objective_of(params, "classification"), 0), (params,))[1]


def test_only_where_it_pays(x64):
    data, objective, params = problem_of("mlp")
    client = client_of(data, objective, 2)  # its Gram matrix is 300 x 300
    assert entered(client, (params,), steps=100)[1]
    assert not entered(client, (params,), steps=2)[1]
    wide = client_of(data, objective, 2).draw(KEY, 1500)
    assert not entered(client, (params,), wide)[1]


def test_optimisers_that_are_not_linear_see_the_weights(x64, plainly):
    data, objective, params = problem_of("mlp")
    client, options = client_of(data, objective, 0), {"rate": 0.01, "steps": 40, "batch_size": 0, "which": "adam"}
    one = sgd(client, params, KEY, **options)
    plainly()
    np.testing.assert_array_equal(flat(one), flat(sgd(client, params, KEY, **options)))


METHODS = {
    "fedavg": FedAvg(rate=0.05, batch_size=0, local_steps=25),
    "fedprox": FedProx(rate=0.05, batch_size=0, local_steps=25, prox_weight=0.5),
    "scaffold": Scaffold(rate=0.05, batch_size=0, local_steps=25),
    "pfedme": PFedMe(rate=0.05, inner_rate=0.05, prox_weight=3.0, local_steps=3, inner_steps=20, batch_size=10),
    "pfedme-momentum": PFedMe(rate=0.05, prox_weight=3.0, local_steps=2, inner_optimizer="nesterov"),
}


@pytest.mark.second
@pytest.mark.parametrize(("name", "block"), [*((name, 2) for name in METHODS), ("fedavg", 1), ("scaffold", 1)])
def test_a_method_gives_the_same_federation(x64, plainly, name, block):
    data, objective, params = problem_of("wide", l2=0.01)
    options = {"cohort": 3, "block": block}
    states = [run(Simulation(data, objective, params, METHODS[name], **options), rounds=2)]
    plainly()
    states.append(run(Simulation(data, objective, params, METHODS[name], **options), rounds=2))
    shared, plain = (flat(jax.tree.map(jnp.asarray, (s.shared, s.private))) for s in states)
    np.testing.assert_allclose(shared, plain, atol=1e-11)
    assert bits(states[0]) != bits(states[1])  # else the span was not taken


def sized(sizes, index):
    data, objective, params = problem_of("mlp")
    client = client_of(data, objective, index)
    return replace(client, federation=replace(client.federation, sizes=sizes)), params


def capacity_at(client, params, steps):
    """At which capacity a client is solved."""
    found = span.by_size(
        client,
        (params,),
        lambda client: jax.tree.map(lambda a: jnp.full_like(a, client.federation.capacity), params),
        steps=steps,
    )
    (capacity,) = set(flat(found))
    return capacity


@pytest.mark.parametrize(("index", "capacity"), [(0, 40), (1, 8), (2, 300), (3, 8)])
def test_a_client_is_solved_at_the_smallest_capacity_that_holds_it(x64, index, capacity):
    assert capacity_at(*sized((8, 40, 300), index), steps=100) == capacity


@pytest.mark.parametrize(("sizes", "steps"), [((), 100), ((300,), 100), ((40, 300), 1)])
def test_one_program_where_there_is_one_size_or_no_span(x64, sizes, steps):
    assert capacity_at(*sized(sizes, 1), steps=steps) == 300


def test_batched_clients_have_one_program(x64):
    data, objective, params = problem_of("wide")
    alone, batched = (Simulation(data, objective, params, METHODS["fedavg"], block=block) for block in (1, 2))
    clients = [s.plan.client(s.arrays, jnp.asarray(0), jnp.asarray(0)) for s in (alone, batched)]
    assert [client.federation.sizes for client in clients] == [(8, 40, 300), ()]


def test_a_step_costs_fewer_operations(plainly):
    data = data_of(np.float32)
    model = MLP(INPUTS, (64,), CLASSES, key=KEY)
    objective, params = objective_of(model, "classification"), eqx.filter(model, eqx.is_inexact_array)
    client, method = client_of(data, objective, 0), PFedMe(inner_steps=10, local_steps=1)

    def operations():
        compiled = jax.jit(lambda w: method.local(w, None, client, KEY)[0]).lower(params).compile()
        return compiled.cost_analysis()["flops"]

    inside = operations()
    plainly()
    assert operations() > 3 * inside
