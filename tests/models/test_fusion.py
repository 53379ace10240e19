"""Heads over the features of several modalities, against their formulas in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.models.fusion import FUSIONS, Attention, Concatenation

KEY = jax.random.key(0)
NAMES, WIDTH = ("acc", "gyro", "text"), 4
RNG = np.random.default_rng(0)
FEATURES = {name: jnp.asarray(RNG.normal(size=WIDTH), jnp.float32) for name in NAMES}


def flags(*there: str) -> dict[str, jax.Array]:
    return {name: jnp.asarray(float(name in there)) for name in NAMES}


def made(kind: str) -> Concatenation | Attention:
    return FUSIONS[kind](NAMES, WIDTH, (5,), 3, key=KEY)


@pytest.mark.parametrize("there", [NAMES, ("acc", "text"), ("gyro",), ()])
def test_concatenation_has_zeros_in_the_place_of_what_is_absent(there: tuple[str, ...]) -> None:
    head = made("concat")
    joined = np.concatenate([FEATURES[name] * (name in there) for name in NAMES])
    np.testing.assert_allclose(head(FEATURES, flags(*there)), head.head(jnp.asarray(joined)), atol=1e-6)
    given = {name: FEATURES[name] for name in there}
    np.testing.assert_allclose(head(given, flags(*there)), head.head(jnp.asarray(joined)), atol=1e-6)


@pytest.mark.parametrize("there", [NAMES, ("acc", "text"), ("gyro",)])
def test_attention_is_the_mean_of_what_is_present_by_the_softmax_of_the_scores(there: tuple[str, ...]) -> None:
    head = made("attention")
    rows = np.stack([FEATURES[name] for name in there])
    hidden = np.tanh(rows @ np.asarray(head.hidden.weight).T + head.hidden.bias)
    scores = hidden @ np.asarray(head.score.weight)[0]
    weights = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(head(FEATURES, flags(*there)), head.head(jnp.asarray(weights @ rows)), atol=1e-6)


@pytest.mark.parametrize("kind", FUSIONS)
def test_what_is_absent_counts_for_nothing_even_if_it_is_not_a_number(kind: str) -> None:
    head = made(kind)
    spoilt = FEATURES | {"gyro": jnp.full(WIDTH, jnp.nan)}
    np.testing.assert_array_equal(head(spoilt, flags("acc", "text")), head(FEATURES, flags("acc", "text")))
    nothing = head(FEATURES, flags())
    np.testing.assert_allclose(nothing, head.head(jnp.zeros(WIDTH * (3 if kind == "concat" else 1))), atol=1e-6)
    slope = jax.grad(lambda h: head(h, flags("acc", "text")).sum())(FEATURES)
    assert not slope["gyro"].any()
    assert slope["acc"].any()


def test_the_parts_of_a_head_are_drawn_apart_in_single_precision() -> None:
    leaves = jax.tree.leaves(made("attention"))
    assert all(leaf.dtype == jnp.float32 for leaf in leaves)
    assert made("attention").score.bias is None
    assert made("concat").head.layers[0].weight.shape == (5, 3 * WIDTH)
    assert made("attention").head.layers[0].weight.shape == (5, WIDTH)
    starts = {np.asarray(leaf).ravel()[:3].tobytes() for leaf in leaves}
    assert len(starts) == len(leaves)
