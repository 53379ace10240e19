"""One client's model, which predicts raw rows and can be called on one sample."""

import numpy as np

from idiolect.core import tree
from idiolect.core.errors import ConfigError, unknown
from idiolect.models.client_model import ClientModel
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.round import State


def client_model(evaluator: Evaluator, state: State, model: str, client: str | int) -> ClientModel:
    """Build one client's named model. client: its name or number. Raises `ConfigError` for an unknown one."""
    simulation = evaluator.simulation
    data = simulation.data
    if model not in simulation.offered:
        raise unknown("model", model, simulation.offered)
    if isinstance(client, str):
        if client not in data.clients:
            raise unknown("client", client, data.clients)
        client = data.clients.index(client)
    elif not 0 <= client < data.num_clients:
        raise ConfigError(f"client {client} is not one of 0..{data.num_clients - 1}")
    params = tree.gather(evaluator.client_params(state, [model], np.array([client]))[model], 0)
    return ClientModel(
        simulation.objective.model(params),
        data.task,
        data.feature_shape,
        data.classes_of(client),
        data.schema,
        data.target,
        {"model": model, "client": data.clients[client], "method": simulation.algorithm.name},
    )
