"""What a method names as a model: parameters of the run's module, another way to predict, and who shares it."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Int, PyTree

from idiolect.core.tree import Params

Module = Callable[[Any], Any]
Models = dict[str, PyTree]
"""Named models: each parameters of the run's module, a `Predictor`, or either of them as `Shared`."""


class Predictor(eqx.Module):
    """A model that is not the run's module with other parameters: a mixture, a neighbours' vote, a fusion of parts.

    Its fields are what it predicts from: arrays, parameters of the run's module, settings.
    """

    @abstractmethod
    def bound(self, module: Callable[[Params], Any]) -> Module:
        """An Equinox module that maps one sample to outputs, as the run's does.

        module(params): the run's module with these parameters, with all its methods. If only some samples can be
        answered, what is returned has a method usable(x), 1 or 0.
        """


class Shared(eqx.Module):
    """A named model that all clients have in common or, with a group's number, all clients of that group.

    Clients that name the same group (or none) name the same model, entry by entry: it is kept once.
    """

    model: PyTree
    group: Int[Array, "*clients"] | None = None


def is_common(model: Any) -> bool:
    """Whether a named model is one that all clients have in common."""
    return isinstance(model, Shared) and model.group is None


def unshared(models: PyTree) -> PyTree:
    """The same models, without the word on who shares them."""

    def shared(model: Any) -> bool:
        return isinstance(model, Shared)

    return jax.tree.map(lambda model: model.model if shared(model) else model, models, is_leaf=shared)
