"""What an advice reports of its data: the clients, their samples, and the audit."""

from dataclasses import dataclass

import numpy as np

from idiolect.data.audit import audit_lines
from idiolect.data.federated import FederatedData, TaskKind
from idiolect.study.store.recorded import census


@dataclass(frozen=True)
class About:
    """The data of an advice, as its first division has them.

    train, validation, test: samples of each client. classes, counts: of each client's training samples; quantiles:
    minimum, quartiles and maximum of a regression's training labels; empty for a classification. audit: the
    findings of the leakage audit.
    """

    name: str
    task: TaskKind
    clients: tuple[str, ...]
    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]
    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    quantiles: tuple[tuple[float, ...], ...]
    audit: tuple[str, ...]

    @property
    def num_clients(self) -> int:
        """Number of clients."""
        return len(self.clients)

    @property
    def rows(self) -> int:
        """Rows of all clients and splits."""
        return sum(self.train) + sum(self.validation) + sum(self.test)


def about_of(data: FederatedData) -> About:
    """What an advice on these data reports of them."""
    found = census(data, np.arange(data.num_clients))
    return About(
        data.name,
        data.task,
        tuple(found["names"]),
        tuple(found["train"]),
        tuple(found["validation"]),
        tuple(found["test"]),
        tuple(found.get("classes", ())),
        tuple(tuple(row) for row in found.get("counts", ())),
        tuple(tuple(row) for row in found.get("quantiles", ())),
        tuple(audit_lines(data)),
    )
