"""The federation as a hub knows it: names, counts and shapes, and no sample."""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from idiolect.core.errors import DataError
from idiolect.data.federated import SPLITS, FederatedData, GeneratedSplit, Maker
from idiolect.data.modalities import Modalities
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.deploy.kind import Kind

NOTE = "trained at real sites: scores are sums that the sites sent, and nobody has compared their samples for leaks"


class Unseen(Maker):
    """Samples that are elsewhere: only their shapes are asked for."""

    capacity: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    is_class: bool = eqx.field(static=True)

    def samples(self, client_id: Int[Array, ""]) -> tuple[Shaped[Array, "capacity ..."], Shaped[Array, "capacity"]]:
        """Zeros: nothing computes with them."""
        del client_id
        kind = jnp.int32 if self.is_class else jnp.float32
        return jnp.zeros((self.capacity, *self.shape)), jnp.zeros(self.capacity, kind)


def unseen_data(kind: Kind, counts: Mapping[str, Mapping[str, int]]) -> FederatedData:
    """The federation of sites with these numbers of samples, in their order. counts: site -> split -> samples.

    Raises `DataError` if a site has no training sample, or none has test samples.
    """
    for site, of in counts.items():
        if of.get("train", 0) < 1:
            raise DataError(f"site '{site}' has no training samples")
    shape, is_class = tuple(kind.feature_shape), kind.task == "classification"

    def split(name: str) -> GeneratedSplit:
        sizes = np.array([of.get(name, 0) for of in counts.values()], np.int64)
        return GeneratedSplit(Unseen(max(int(sizes.max()), 1), shape, is_class), sizes)

    modalities = None
    if kind.modalities is not None:
        modalities = Modalities(tuple(m.name for m in kind.modalities), tuple(m.shape for m in kind.modalities))
    schema = None if kind.schema is None else Schema.from_dict(kind.schema)
    target = None if kind.target is None else Target(name=kind.name, mean=kind.target[0], scale=kind.target[1])
    train, validation, test = (split(name) for name in SPLITS)
    return FederatedData(
        name=kind.name,
        train=train,
        validation=validation,
        test=test,
        clients=tuple(counts),
        task=kind.task,
        classes=tuple(kind.classes),
        notes=(NOTE,),
        provenance={"source": "sites", "kind": kind.digest},
        modalities=modalities,
        schema=schema,
        target=target,
    )
