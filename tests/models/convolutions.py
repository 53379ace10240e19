"""Derivatives of a loss of images and kernels, by which two convolutions are compared."""

import jax
import jax.numpy as jnp
import numpy as np


def draws(*shapes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [jax.device_put(rng.normal(size=shape).astype(dtype)) for shape in shapes]


def loss_of(implementation, axes):
    """A loss that is not linear in the outputs, of images and kernels batched over these axes, innermost last."""
    batched = implementation
    for x_axis, kernel_axis in reversed(axes):
        batched = jax.vmap(batched, (x_axis, kernel_axis))

    def loss(x, kernel):
        y = batched(x, kernel)
        # Made by NumPy: XLA of jax 0.11.2 takes minutes for a line of numbers that is bent into six axes.
        return jnp.sum(jnp.sin(y) * np.cos(np.arange(y.size, dtype=y.dtype)).reshape(y.shape))

    return loss


def gradients(loss):
    return jax.value_and_grad(loss, (0, 1))


def forward(loss):
    return lambda x, w: jax.jvp(loss, (x, w), (jnp.cos(x), jnp.sin(w)))


def forward_over_reverse(loss):
    return lambda x, w: jax.jvp(jax.grad(loss, (0, 1)), (x, w), (jnp.cos(x), jnp.sin(w)))


def reverse_over_reverse(loss):
    def slope(x, w):
        along_x, along_w = jax.grad(loss, (0, 1))(x, w)
        return jnp.sum(along_x * jnp.cos(x)) + jnp.sum(along_w * jnp.sin(w))

    return jax.grad(slope, (0, 1))


def compare(function, convolutions, x, kernel, axes, tolerance):
    """function(loss) at the same place for two convolutions; the second one is the reference."""
    got, expected = jax.jit(lambda *at: [function(loss_of(f, axes))(*at) for f in convolutions])(x, kernel)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1, np.abs(b).max()))
