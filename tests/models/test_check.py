import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from idiolect.core.errors import ConfigError
from idiolect.models.check import check_model

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
