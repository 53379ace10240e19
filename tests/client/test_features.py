"""The two stages against the plain forward pass, for models of all kinds."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts.solvers import sgd
from idiolect.client.features import Staged, on_features
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.models.cnn import CNN
from idiolect.models.dense import MLP, MultinomialLogistic
from idiolect.models.parts import separate
from tests.federations import Tanh, classification, client_of, federation, flat, split_of
from tests.modalities import FLAT, close, problem, without
from tests.tiers import second

KEY = jax.random.key(0)


class TwoLayerHead(eqx.Module):
    """A user's model: a normalised body, and a head that is not linear and also sees the input."""

    body: eqx.nn.MLP
    norm: eqx.nn.LayerNorm
    first: eqx.nn.Linear
    second: eqx.nn.Linear

    def __init__(self):
        keys = jax.random.split(KEY, 3)
        self.body = eqx.nn.MLP(3, 4, 5, 1, key=keys[0])
        self.norm = eqx.nn.LayerNorm(4)
        self.first = eqx.nn.Linear(7, 6, key=keys[1])
        self.second = eqx.nn.Linear(6, 2, key=keys[2])

    def __call__(self, x):
        h = self.norm(self.body(x))
        return self.second(jnp.tanh(self.first(jnp.concatenate([h, x]))))


class Compiled(eqx.Module):
    """Layers inside `jax.jit`, twice the same function, and a rematerialised whole."""

    first: jax.Array
    second: jax.Array
    third: jax.Array

    def __call__(self, x):
        layer = jax.jit(lambda weight, h: jax.nn.relu(weight @ h))

        @jax.checkpoint
        def whole(first, second, third, x):
            return third @ jax.jit(lambda a, b, h: layer(b, layer(a, h)))(first, second, x)

        return whole(self.first, self.second, self.third, x)


class Looped(eqx.Module):
    """A loop, a branch and functions with derivatives of their own, in the body and in the head."""

    cell: jax.Array
    scale: jax.Array
    table: np.ndarray
    out: jax.Array

    def __call__(self, x):
        h, _ = jax.lax.scan(lambda h, _: (jnp.tanh(self.cell @ h + x), None), x, length=3)
        h = jax.lax.cond(h[0] > 0, lambda h: h, lambda h: 2 * h, h) + self.table * self.scale
        out, _ = jax.lax.scan(lambda h, _: (jax.nn.gelu(self.out @ h), None), twice(h), length=2)
        return jax.nn.log_softmax(twice(out))


@jax.custom_vjp
def twice(x):
    return 2 * x


twice.defvjp(lambda x: (2 * x, None), lambda _, slope: (2 * slope,))


class Crossed(eqx.Module):
    """The first leaf is used last, and one output does not depend on it."""

    last: jax.Array
    early: jax.Array

    def __call__(self, x):
        h = jnp.sin(self.early @ x)
        return jnp.stack([jnp.sum(self.last * self.early[0]) * h[0], h[1]])


def matrices(*shapes):
    return [jax.random.normal(jax.random.fold_in(KEY, i), shape) for i, shape in enumerate(shapes)]


MODELS = {
    "mlp": (MLP(3, (4, 5), 2, key=KEY), (3,), ["last", "none", "all", "layers[0]", "layers[1]"]),
    "cnn": (
        CNN((10, 10), 2, channels=(2, 3), kernel=3, dense=(4,), key=KEY),
        (10, 10),
        ["last", "convolutions", "all"],
    ),
    "mlr": (MultinomialLogistic(6, 3, key=KEY), (2, 3), ["last", "none", "linear.bias"]),
    "user": (TwoLayerHead(), (3,), ["last", "first", "norm", "body", lambda path, _: path[:3] in ("fir", "sec")]),
    "jit": (Compiled(*matrices((4, 3), (5, 4), (2, 5))), (3,), ["first", "second", "third", "all"]),
    "loop": (Looped(*matrices((3, 3), ()), np.arange(1, 4), *matrices((3, 3))), (3,), ["cell", "scale", "out"]),
    "crossed": (Crossed(*matrices((3,), (2, 3))), (3,), ["last", "early", "none"]),
}
CASES = [(name, head) for name, (_, _, heads) in MODELS.items() for head in heads]


def stages(name, head):
    """(function of (head, body, x), the two stages, head, body, samples)."""
    model, shape, _ = MODELS[name]
    params, static = eqx.partition(model, eqx.is_inexact_array)
    body, chosen = separate(params, (lambda path, _: path == "last") if (name, head) == ("crossed", "last") else head)
    x = jax.random.normal(jax.random.key(1), (4, *shape))

    def function(head, body, x):
        return eqx.combine(head, body, static)(x)

    return function, Staged(function, *jax.eval_shape(lambda: (chosen, body, x[0]))), chosen, body, x


FEW = [case if case[1] in MODELS[case[0]][2][:2] else second(*case) for case in CASES]


@pytest.mark.parametrize(("name", "head"), FEW)
def test_the_stages_are_the_function_and_so_is_their_gradient(name, head):
    function, staged, chosen, body, x = stages(name, head)

    def plain(chosen):
        return jax.vmap(lambda x: function(chosen, body, x))(x)

    def apart(chosen, fixed, features):
        return jax.vmap(lambda features: staged.finish(chosen, fixed, features))(features)

    @jax.jit
    def both():
        features = jax.vmap(lambda x: staged.features(body, x))(x)
        kept = staged.fixed(body), features
        functions = (plain, lambda chosen: apart(chosen, *kept)) if jax.tree.leaves(chosen) else ()
        return plain(chosen), apart(chosen, *kept), [jax.jacobian(f)(chosen) for f in functions], features

    expected, outputs, slopes, features = both()
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    for a, b in zip(*map(jax.tree.leaves, slopes or ((), ())), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert all(leaf.shape[0] == 4 for leaf in features)


@pytest.mark.parametrize(
    ("name", "head", "features", "products"),
    [
        ("mlp", "last", [(5,)], 1),
        ("mlp", "layers[1]", [(4,)], 2),
        ("mlp", "none", [(2,)], 0),
        ("mlp", "all", [(3,)], 3),
        ("cnn", "last", [(4,)], 1),
        ("cnn", "all", [(1, 10, 10, 1)], 4),  # the image, not its patches
        ("user", "last", [(6,)], 1),
        ("user", "first", [(7,)], 2),
        ("jit", "third", [(5,)], 1),
        ("jit", "second", [(4,)], 2),
    ],
)
def test_everything_that_the_head_does_not_touch_is_done_once(name, head, features, products):
    """The second stage holds the head's products and convolutions and no other; calls are looked into."""
    _, staged, chosen, body, x = stages(name, head)
    fixed, kept = staged.fixed(body), staged.features(body, x[0])
    assert [leaf.shape for leaf in kept] == features
    text = str(jax.make_jaxpr(staged.finish)(chosen, fixed, kept))
    assert text.count("dot_general") + text.count("correlate") == products


def test_what_depends_on_the_body_alone_is_not_kept_for_each_sample():
    _, staged, _, body, x = stages("crossed", "last")
    np.testing.assert_array_equal(staged.fixed(body), [body.early[0]])
    assert [leaf.size for leaf in staged.features(body, x[0])] == [1, 1]  # JAX decides between () and (1,)


@pytest.mark.parametrize("name", ["mlp", second("jit"), second("loop")])
def test_it_works_inside_maps_and_loops_over_traced_bodies(name):
    """As the runtime uses it: clients mapped one by one or together, and a loop of gradient steps on the head."""
    head = MODELS[name][2][0] if name != "jit" else "third"
    model, _, _ = MODELS[name]
    static = eqx.filter(model, eqx.is_inexact_array, inverse=True)
    _, _, chosen, body, x = stages(name, head)
    heads, bodies = (jax.tree.map(lambda leaf: jnp.stack([leaf, 0.5 * leaf]), part) for part in (chosen, body))

    def function(head, body, x):
        return eqx.combine(head, body, static)(x)

    def train(both, in_stages):
        chosen, body = both
        staged = Staged(function, chosen, body, x[0])
        fixed, features = staged.fixed(body), jax.vmap(staged.features, in_axes=(None, 0))(body, x)

        def loss(chosen):
            if in_stages:
                outputs = jax.vmap(lambda features: staged.finish(chosen, fixed, features))(features)
            else:
                outputs = jax.vmap(lambda x: function(chosen, body, x))(x)
            return jnp.sum(outputs**2)

        step = lambda _, chosen: jax.tree.map(lambda w, g: w - 0.01 * g, chosen, jax.grad(loss)(chosen))  # noqa: E731
        return jax.lax.fori_loop(0, 3, step, chosen)

    expected = [train(jax.tree.map(lambda leaf, i=i: leaf[i], (heads, bodies)), False) for i in range(2)]
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *expected)
    for batch in (1, 2):
        got = jax.jit(lambda b=batch: jax.lax.map(lambda both: train(both, True), (heads, bodies), batch_size=b))()
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


FEATURES_KEY = jax.random.key(5)
PROBLEM = classification((9, 1, 300, 4), l2=0.1)  # the third fills two tiles
BODY, HEAD = separate(PROBLEM.params, "second")


@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_head_alone_has_the_same_objective_and_gradient(index):
    client = PROBLEM.client(index)

    @jax.jit
    def both(body, head):
        held = on_features(client, body, head)
        batch, features = client.draw(FEATURES_KEY, 6), held.draw(FEATURES_KEY, 6)
        plain = client.full_value_and_grad(head, body), client.grad(head, batch, body), batch.y
        apart = held.full_value_and_grad(head), held.grad(head, features), features.y
        whole = client.objective.scores(tree.merged(head, body), batch)
        return (*plain, whole), (*apart, held.objective.scores(head, features))

    for a, b in zip(*map(jax.tree.leaves, both(BODY, HEAD)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"batch_size": 4}, {"batch_size": 4, "epochs": 2}])
def test_a_solver_trains_the_same_head_with_the_same_draws(options):
    client = PROBLEM.client(2)
    same = {"rate": 0.2, "steps": 5, **options}

    @jax.jit
    def both(body, head):
        held = on_features(client, body, head)
        return sgd(held, head, FEATURES_KEY, **same), sgd(client, head, FEATURES_KEY, fixed=body, **same)

    apart, plain = both(BODY, HEAD)
    np.testing.assert_allclose(flat(apart), flat(plain), rtol=1e-5, atol=1e-6)
    assert np.abs(flat(plain) - flat(HEAD)).max() > 0.1


def test_a_window_of_the_client_has_features_of_its_own_samples():
    client = PROBLEM.client(2)

    def slope(client):
        return jax.jit(lambda body, head: on_features(client, body, head).full_value_and_grad(head)[1])(BODY, HEAD)

    x, y = PROBLEM.data.train.client(2)
    part = federation(split_of([(x[170:190], y[170:190])]), task="classification", classes=("a", "b", "c"))
    expected = client_of(part, PROBLEM.objective, 0).full_value_and_grad(HEAD, BODY)[1]
    np.testing.assert_allclose(flat(slope(client.window(170, 20))), flat(expected), rtol=1e-5, atol=1e-6)


def narrow(classes):
    """Two clients with 2 of 4 classes, and a head with as many rows as asked for."""
    rng = np.random.default_rng(3)
    parts = [(rng.normal(size=(n, 3)).astype("f4"), rng.integers(0, 2, n).astype("i4")) for n in (7, 5)]
    train = split_of(parts) if classes == 2 else replace(split_of(parts), outputs=np.full(2, 2))
    data = federation(train, task="classification", classes=("a", "b", "c", "d")[:classes])
    first, bias, second = (rng.normal(size=shape).astype("f4") for shape in ((5, 3), (5,), (4, 5)))
    params = Tanh(jnp.asarray(first), jnp.asarray(bias), jnp.asarray(second[:classes]))
    return client_of(data, objective_of(params, "classification", l2=0.1), 1), params


def test_a_client_with_fewer_classes_has_a_head_with_fewer_rows():
    """K_i = 2 of 4 outputs: the same probabilities and gradients, and training gives the same first rows."""
    results = []
    for client, params in (narrow(4), narrow(2)):
        body, head = separate(params, "second")

        @eqx.filter_jit
        def run(client, body, head):
            held = on_features(client, body, head)
            batch = held.take(jnp.arange(5))
            scores = held.objective.scores(head, batch)
            slope = client.full_value_and_grad(tree.merged(head, body))[1]
            return sgd(held, head, FEATURES_KEY, rate=0.3, steps=4, batch_size=0), slope, scores

        trained, slope, scores = run(client, body, head)
        assert np.abs(trained.second[:2] - head.second[:2]).max() > 0.05
        results.append((trained.second[:2], slope.first, slope.bias, slope.second[:2], scores[:3]))
    for a, b in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_sample_that_the_whole_model_cannot_answer_counts_for_nothing_on_features_too():
    given = problem(l2=0.1, **FLAT | {"modalities": ["acc"]})
    client = given.client(2)
    client = replace(client, x=client.x.at[::3].set(without(client.x[::3], "acc")))
    body, head = separate(given.params, "decoders")

    @jax.jit
    def both(body, head):
        held = on_features(client, body, head)
        batch, features = client.draw(FEATURES_KEY, 6), held.draw(FEATURES_KEY, 6)
        plain = client.full_value_and_grad(head, body), client.grad(head, batch, body)
        return plain, (held.full_value_and_grad(head), held.grad(head, features))

    close(*both(body, head))
    assert float(client.answered(given.params)) < float(client.size)
