"""The one way to a run: a model on a federation's data is a learning problem, a method on it is a simulation."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
from jaxtyping import PyTree

from idiolect.algorithms.base import Algorithm
from idiolect.client.objective import Objective, objective_of
from idiolect.core.losses import SampleLoss
from idiolect.core.random import model_key
from idiolect.core.tree import is_parameter
from idiolect.data.federated import FederatedData
from idiolect.models import build, check_model, l2_of
from idiolect.models.registry import loss_for
from idiolect.models.spec import Spec
from idiolect.runtime.simulate import Simulation


@dataclass(frozen=True, eq=False)
class Problem:
    """What all methods of a comparison are given: an initial model on a federation's data.

    module: the initial model; its parameters may be shapes. l2: weight of the objective's L2 term. loss: of one
    sample; None: the default of the task.
    """

    data: FederatedData
    module: eqx.Module
    l2: float = 0.0
    loss: SampleLoss | None = None

    @property
    def params(self) -> PyTree:
        """The initial parameters."""
        return eqx.filter(self.module, is_parameter)

    @property
    def objective(self) -> Objective:
        """The objective of each client."""
        return objective_of(self.module, self.data.task, self.l2, self.loss)

    def simulation(self, algorithm: Algorithm, **options: Any) -> Simulation:
        """Build the simulation of one method; options: see `Simulation`."""
        return Simulation(self.data, self.objective, self.params, algorithm, **options)


def problem_of(data: FederatedData, model: eqx.Module | Spec | str, seed: int = 0, shapes: bool = False) -> Problem:
    """Build the problem of a model: the user's module as it is, or a specification, initialised from the seed.

    shapes: build only the shapes of the parameters. Raises `ConfigError` if the model does not fit the data.
    """
    if isinstance(model, eqx.Module):
        check_model(model, data.feature_shape, data.num_outputs)
        return Problem(data, model)

    def make() -> eqx.Module:
        key = model_key(seed)
        return build(model, data.feature_shape, data.num_outputs, data.task, key, data.modalities)

    module = eqx.filter_eval_shape(make) if shapes else make()
    return Problem(data, module, l2_of(model), loss_for(model, data))
