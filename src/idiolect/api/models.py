"""Every client's model by name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import equinox as eqx

from idiolect.core.errors import ConfigError

Model = TypeVar("Model", bound=eqx.Module)


class ClientModels(Mapping[Any, Model], Generic[Model]):
    """A mapping from each client's name to its model, which is built when it is asked for.

    Raises `ConfigError`, which is a `KeyError` here, for a client that there is none of.
    """

    def __init__(self, clients: Sequence[Any], build: Callable[[Any], Model]) -> None:
        self._clients, self._build = tuple(clients), build

    def __getitem__(self, client: Any) -> Model:
        if client not in self:
            raise UnknownClientError(
                f"unknown client {client!r}; there are {len(self)}, such as {self._clients[0]!r}"
            )
        return self._build(client)

    def __contains__(self, client: object) -> bool:
        return client in self._clients

    def __iter__(self) -> Iterator[Any]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)

    def __repr__(self) -> str:
        return f"<models of {len(self)} clients, each built when it is asked for>"


class UnknownClientError(ConfigError, KeyError):
    """A client's model was asked for that there is none of; a `KeyError` too, so that `get` has its default."""

    __str__ = Exception.__str__
