"""Synthetic(alpha, beta) for any number of clients: samples are generated from a client's number when used."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from idiolect.core.errors import require
from idiolect.core.memory import check_fits
from idiolect.core.random import check_seed
from idiolect.data.divide.division import check_fractions, counts
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.generated import GeneratedSplit, Maker
from idiolect.data.sets.synthetic import CLASSES, FEATURES, check_spread

_MODEL, _INPUTS, _SAMPLES = 0, 1, 2  # a client's streams; split k has the stream _SAMPLES + k


class SyntheticClient(Maker):
    """Generates one split of a client, see `synthetic_population`. seed: the key's data; split: index in SPLITS."""

    seed: UInt32[np.ndarray, "2"]
    alpha: float
    beta: float
    capacity: int = eqx.field(static=True)
    split: int = eqx.field(static=True)

    def samples(self, client_id: Int[Array, ""]) -> tuple[Float[Array, "capacity 60"], Int[Array, "capacity"]]:
        """x ~ N(v_i, diag(j^-1.2)), y = argmax(x W_i + b_i) for all `capacity` rows."""
        client_key = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(self.seed)), client_id)

        def normal(stream: int, *shape: int) -> Float[Array, "..."]:
            return jax.random.normal(jax.random.fold_in(client_key, stream), shape)

        model = normal(_MODEL, 1 + (FEATURES + 1) * CLASSES)
        weights = (self.alpha * model[0] + model[1:]).reshape(FEATURES + 1, CLASSES)
        inputs = normal(_INPUTS, 1 + FEATURES)
        centre = self.beta * inputs[0] + inputs[1:]
        noise = normal(_SAMPLES + self.split, self.capacity, FEATURES)
        x = centre + noise * jnp.arange(1, FEATURES + 1) ** -0.6
        return x, jnp.argmax(x @ weights[:-1] + weights[-1], axis=1).astype(jnp.int32)


def synthetic_population(
    alpha: float = 0.5,
    beta: float = 0.5,
    clients: int = 1_000_000,
    seed: int = 0,
    *,
    scale: float = 0.4,
    max_size: int = 100,
    test: float = 0.25,
    validation: float = 0.0,
) -> FederatedData:
    """Synthetic(alpha, beta) for any number of clients, whose samples are generated when they are used.

    The distributions are those of `synthetic`: y = argmax(x W_i + b_i), x ~ N(v_i, diag(j^-1.2)), W_i, b_i ~
    N(u_i, 1), u_i ~ N(0, alpha²), v_i ~ N(B_i, 1), B_i ~ N(0, beta²). A client depends only on the seed and its
    number, not on the number of clients; its splits are independent draws.

    scale, max_size: client i has scale (int(lognormal(4, 2)) + 50) samples, rounded up and at most max_size.
    """
    check_spread(alpha, beta)
    check_seed(seed)
    require(1 <= clients < 2**31, f"clients must lie between 1 and 2^31 - 1, it is {clients}")
    require(scale > 0, f"scale must be greater than 0, it is {scale}")
    require(10 <= max_size <= 1_000_000, f"max_size must lie between 10 and 1,000,000, it is {max_size}")
    check_fractions(test, validation)
    check_fits(100 * clients, f"the names and sizes of {clients:,} clients; use fewer")
    drawn = np.random.Generator(np.random.PCG64(seed)).lognormal(4, 2, clients)
    sizes = np.minimum(np.ceil(scale * (np.floor(drawn) + 50)), max_size).astype(np.int64)
    divided = np.array([counts(size, test, validation) for size in range(max_size + 1)])  # split sizes by client size
    key = np.asarray(jax.random.key_data(jax.random.key(seed)))
    splits = {
        name: GeneratedSplit(
            SyntheticClient(
                seed=key, alpha=float(alpha), beta=float(beta), capacity=max(int(divided[-1, place]), 1), split=place
            ),
            divided[sizes, place].astype(np.int32),
        )
        for place, name in enumerate(SPLITS)
    }
    return FederatedData(
        name=f"synthetic-population({alpha:g}, {beta:g})",
        clients=tuple(f"client {number}" for number in range(clients)),
        task="classification",
        classes=tuple(str(label) for label in range(CLASSES)),
        notes=("samples are generated from the client's number whenever they are used; none is stored",),
        provenance={
            "source": "synthetic-population",
            "arguments": {
                "alpha": alpha,
                "beta": beta,
                "clients": clients,
                "seed": seed,
                "scale": scale,
                "max_size": max_size,
                "test": test,
                "validation": validation,
            },
            "normalisation": {"name": "none", "fitted_on": "nothing"},
        },
        train=splits["train"],
        validation=splits["validation"],
        test=splits["test"],
    )
