"""What is said to models of other libraries."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import idiolect
from idiolect.core.errors import ConfigError
from idiolect.data import from_arrays
from idiolect.models import from_flax, from_functions, load_model, save_model
from idiolect.models.adapt import check_model, refuse_model
from idiolect.models.parts import separate


def of_library(module):
    """An object whose class pretends to be of a library that is not installed."""
    return type("Net", (type("Module", (), {"__module__": module}),), {"__module__": "mine"})()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (of_library("torch.nn.modules.module"), "not a Net of torch.nn; PyTorch's operations cannot be traced"),
        (of_library("flax.nnx.module"), r"not a Net of flax.nnx; wrap it: idiolect.models.from_flax\(model\)"),
        (of_library("flax.linen.module"), r"model.apply\(\{'params': params\}, x\[None\]\)\[0\], head=...\)$"),
        (of_library("keras.src.models"), "stateless_call"),
        (LogisticRegression(), "not a LogisticRegression of sklearn; .* 'mlr' or 'linear'"),
        (
            lambda x: x,
            r"not a function: a function has no parameters to train; idiolect.models.from_fun",
        ),
        (({"w": 1}, np.dot), r"not a pair; idiolect.models.from_functions\(params, apply\) makes one of it"),
        (eqx.nn.MLP, r"not the class MLP; make one of it first: MLP\(...\)"),
        (3, "such as 'mlr', not a int$"),
    ],
)
def test_it_says_what_is_missing_and_what_to_write(model, message):
    with pytest.raises(ConfigError, match=message):
        refuse_model(model)


KEY = jax.random.key(0)


class Scaled(eqx.Module):
    """A module that a user may write: outputs made from a parameter by a function."""

    scale: jax.Array
    function: object = eqx.field(static=True)

    def __call__(self, x):
        return self.function(self.scale, x)


class NoCall(eqx.Module):
    scale: jax.Array


ONE = jnp.ones(())


def sequence(middle):
    """A network with another layer between two."""
    return eqx.nn.Sequential([eqx.nn.Linear(4, 4, key=KEY), middle, eqx.nn.Linear(4, 3, key=KEY)])


@pytest.mark.parametrize(
    ("model", "shape", "outputs"),
    [
        (eqx.nn.Linear(4, 3, key=KEY), (4,), 3),
        (eqx.nn.MLP(4, "scalar", 5, 1, key=KEY), (4,), 1),
        (eqx.nn.Linear(4, 1, key=KEY), (4,), 1),
        (Scaled(ONE, lambda s, x: s * x[0]), (2, 3), 3),
        (sequence(eqx.nn.GroupNorm(2, 4)), (4,), 3),
        (sequence(eqx.nn.Dropout(inference=True)), (4,), 3),
    ],
)
def test_good_models_pass(model, shape, outputs):
    check_model(model, shape, outputs)


@pytest.mark.parametrize(
    ("model", "shape", "outputs", "message"),
    [
        (lambda x: x, (3,), 3, "must be an equinox.Module"),
        (NoCall(ONE), (3,), 3, "must be an equinox.Module with a __call__"),
        (
            sequence(eqx.nn.BatchNorm(4, "batch", mode="ema")),
            (4,),
            3,
            r"\[1\] is a BatchNorm, .* GroupNorm",
        ),
        (sequence(eqx.nn.Dropout()), (4,), 3, r"Sequential.layers\[1\] is a Dropout.*inference_mode\(model\)"),
        (eqx.nn.Linear(4, 3, key=KEY), (5,), 3, r"Linear cannot take one sample of shape \(5,\)"),
        (eqx.nn.Linear(4, 3, key=KEY), (4,), 10, r"outputs of shape \(10,\), but gives \(3,\)"),
        (eqx.nn.Linear(4, "scalar", key=KEY), (4,), 2, r"shape \(2,\), but gives \(\)"),
        (eqx.nn.Linear(4, 2, key=KEY), (4,), 1, r"shape \(1,\) or \(\), but gives \(2,\)"),
        (Scaled(ONE, lambda s, x: (x, x)), (3,), 3, "one array .* returns a tuple"),
        (Scaled(ONE, lambda s, x: x.astype(int)), (3,), 3, "must return floats, but returns int32"),
        (Scaled(ONE, lambda s, x: x if x.sum() > 0 else -x), (3,), 3, "TracerBoolConversionError"),
        (Scaled(jnp.arange(3), lambda s, x: x), (3,), 3, "Scaled has no trainable array"),
        (Scaled(1.0, lambda s, x: s * x), (3,), 3, "Scaled has no trainable array"),
        (Scaled(jnp.ones((0,)), lambda s, x: x), (3,), 3, "Scaled has no trainable array"),
        (Scaled(jnp.ones(3, "bfloat16"), lambda s, x: x), (3,), 3, r"Scaled\.scale is bfloat16.* float32$"),
        (Scaled(jnp.ones(3, complex), lambda s, x: x), (3,), 3, r"Scaled\.scale is complex64"),
    ],
)
def test_bad_models_get_one_clear_line(model, shape, outputs, message):
    with pytest.raises(ConfigError, match=message) as caught:
        check_model(model, shape, outputs)
    assert "\n" not in str(caught.value)


def test_float64_is_for_those_who_enable_it():
    with jax.enable_x64(True):
        check_model(Scaled(jnp.ones(3, "float64"), lambda s, x: s * x), (3,), 3)
        with pytest.raises(ConfigError, match="float16; parameters must be float32 or float64"):
            check_model(Scaled(jnp.ones(3, "float16"), lambda s, x: x), (3,), 3)


def test_nothing_is_computed():
    huge = jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)
    check_model(Scaled(ONE, lambda s, x: (jnp.zeros(huge.shape) @ jnp.zeros(10**6))[:3] * s), (3,), 3)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 4)).astype(np.float32)
WEIGHTS = [RNG.normal(size=shape).astype(np.float32) for shape in ((6, 4), (6,), (3, 6), (3,))]


def dense(params, x):
    (w1, b1), (w2, b2) = params
    return w2 @ jnp.tanh(w1 @ x + b1) + b2


def own():
    """The network of `dense` in Equinox."""
    model = eqx.nn.MLP(4, 3, 6, 1, activation=jnp.tanh, key=jax.random.key(0))
    places = lambda m: [getattr(layer, name) for layer in m.layers for name in ("weight", "bias")]  # noqa: E731
    return eqx.tree_at(places, model, [jnp.asarray(w) for w in WEIGHTS])


def pairs():
    w1, b1, w2, b2 = map(jnp.asarray, WEIGHTS)
    return [(w1, b1), (w2, b2)]


@pytest.fixture(scope="module")
def nnx():
    return pytest.importorskip("flax.nnx")


@pytest.fixture(scope="module")
def network(nnx):
    class Network(nnx.Module):
        """Its last layer is first by name; one layer lies in a list; two have parameters of normalisation."""

        def __init__(self, rngs):
            self.z = nnx.Linear(4, 6, rngs=rngs)
            self.norms = nnx.List([nnx.GroupNorm(6, 2, rngs=rngs), nnx.LayerNorm(6, rngs=rngs)])
            self.drop = nnx.Dropout(0.5, deterministic=True, rngs=rngs)
            self.a = nnx.Linear(6, 3, rngs=rngs)

        def __call__(self, x):
            h = nnx.tanh(self.z(x))
            for norm in self.norms:
                h = norm(h)
            return self.a(self.drop(h))

    return Network


@pytest.mark.second
def test_a_flax_network_computes_what_flax_computes(nnx, network):
    """Outputs and gradients on a batch, with normalisation inside each sample."""
    flax = network(nnx.Rngs(0))
    adapted = from_flax(flax)
    np.testing.assert_allclose(jax.vmap(adapted)(X), flax(jnp.asarray(X)), rtol=1e-6, atol=1e-6)
    slopes = eqx.filter_grad(lambda m: jnp.sum(jax.vmap(m)(X) ** 2))(adapted)
    wanted = nnx.to_pure_dict(nnx.grad(lambda m: jnp.sum(m(jnp.asarray(X)) ** 2))(flax))
    for path, leaf in jax.tree_util.tree_leaves_with_path(slopes):
        other = wanted
        for step in path[1:]:
            other = other[step.key]
        np.testing.assert_allclose(leaf, other, rtol=1e-5, atol=1e-5)


def test_names_are_readable_and_the_last_layer_is_the_last_that_was_set(nnx, network, tmp_path):
    adapted = from_flax(network(nnx.Rngs(0)))
    shape = {"feature_shape": (4,), "num_outputs": 3, "task": "classification"}
    save_model(tmp_path / "m.safetensors", adapted, **shape)
    again = load_model(tmp_path / "m.safetensors", like=from_flax(network(nnx.Rngs(1))))
    np.testing.assert_array_equal(again(jnp.asarray(X[0])), adapted(jnp.asarray(X[0])))
    places = [jax.tree_util.keystr(p, simple=True, separator=".") for p, _ in jax.tree.leaves_with_path(adapted)]
    assert set(places[:2]) == {"params.z.kernel", "params.z.bias"}
    assert {"params.norms.0.scale", "params.a.kernel"} < set(places)
    heads = [separate(adapted, "last")[1], separate(from_flax(network(nnx.Rngs(0)), head="a"), "last")[1]]
    for head in (*heads, separate(adapted, "params.a")[1]):
        assert sorted(leaf.shape for leaf in jax.tree.leaves(head)) == [(3,), (6, 3)]


@pytest.mark.second
def test_a_round_trains_it_as_the_same_network_in_equinox(nnx):
    """FedAvg, and FedPer with the head that each names, from the same weights, three ways."""

    class Flax(nnx.Module):
        def __init__(self):
            self.second_last = nnx.Linear(4, 6, rngs=nnx.Rngs(0))
            self.last = nnx.Linear(6, 3, rngs=nnx.Rngs(0))
            for layer, w, b in ((self.second_last, *WEIGHTS[:2]), (self.last, *WEIGHTS[2:])):
                layer.kernel[...], layer.bias[...] = jnp.asarray(w.T), jnp.asarray(b)

        def __call__(self, x):
            return self.last(nnx.tanh(self.second_last(x)))

    data = from_arrays({f"c{i}": (RNG.normal(size=(12, 4)), np.arange(12) % 3) for i in range(3)}, validation=0.0)
    for method in (idiolect.FedAvg(rate=0.1, local_steps=3), idiolect.FedPer(rate=0.1, local_steps=3)):
        name = method.model_names[0]
        runs = [
            idiolect.run(data, model, method, rounds=2, eval_every=2, splits="test")
            for model in (own(), from_functions(pairs(), dense), from_flax(Flax()))
        ]
        first = runs[0].scores(name).loss
        assert np.abs(first - runs[0].history[0].results[0][0].loss).min() > 1e-3  # it has learned
        for run in runs[1:]:
            np.testing.assert_allclose(run.scores(name).loss, first, rtol=1e-5)


def test_a_dictionary_does_not_say_what_is_last():
    def apply(params, x):
        return params["out"]["w"] @ (params["z"]["w"] @ x)

    params = {"out": {"w": jnp.ones((3, 6))}, "z": {"w": jnp.ones((6, 4))}}
    with pytest.raises(ConfigError, match=r"last layer is unknown.*one of params\.out\.w, params\.z\.w"):
        separate(from_functions(params, apply), "last")
    for head, name in (("last", "out"), ("last", "out.w"), ("params.out", None), ("params['out']", None)):
        found = separate(from_functions(params, apply, head=name), head)[1]
        assert [leaf.shape for leaf in jax.tree.leaves(found)] == [(3, 6)]
    with pytest.raises(ConfigError, match=r"head = 'last' is no part of the parameters; they are out\.w, z\.w"):
        from_functions(params, apply, head="last")
    rows = [{"w": np.ones((6, 4)), "b": np.ones(6)}, {"w": np.ones((3, 6)), "b": np.ones(3)}]  # numpy's, float64
    last = jax.tree.leaves(separate(from_functions(rows, apply), "last")[1])
    assert [(leaf.shape, leaf.dtype.name) for leaf in last] == [((3,), "float32"), ((3, 6), "float32")]


def test_state_beside_the_parameters_is_refused(nnx, network):
    class With(nnx.Module):
        def __init__(self, layer):
            self.first, self.layer = nnx.Linear(4, 4, rngs=nnx.Rngs(0)), layer

    for layer, message in (
        (nnx.BatchNorm(4, rngs=nnx.Rngs(0)), r"layer is a BatchNorm.*use nnx\.GroupNorm or nnx\.LayerNorm"),
        (nnx.Dropout(0.5, rngs=nnx.Rngs(0)), r"layer is a Dropout.*switch it off: module\.eval\(\)"),
        (nnx.Cache(jnp.zeros(3)), "layer is a Cache, state that is no parameter"),
    ):
        with pytest.raises(ConfigError, match=message):
            from_flax(With(layer))
    with pytest.raises(ConfigError, match="not the class Network"):
        from_flax(network)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: from_functions(pairs(), None), "apply must be a function"),
        (lambda: from_functions(dense, pairs()), "apply must be a function"),
        (lambda: from_functions(dense, dense), "hold no floating-point JAX array to train"),
    ],
)
def test_what_makes_no_model_is_told(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
