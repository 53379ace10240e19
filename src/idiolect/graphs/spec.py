"""Named graphs, as experiment files write them: "complete", "random(density=0.3, seed=1)"."""

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.settings import Setting, settings_of, validated
from idiolect.data.federated import FederatedData
from idiolect.graphs import by_data, kinds
from idiolect.graphs.graph import Graph, GraphWarning

EXAMPLE = 'write a kind, or kind(key=value, ...), such as "random(density=0.3, seed=1)"'


@dataclass(frozen=True)
class Kind:
    """A named graph: its function, and what computes that function's first argument from the federation."""

    make: Callable[..., Graph]
    of: Callable[[FederatedData], Any]

    @property
    def options(self) -> dict[str, Setting]:
        """What may be given; the function's first argument is of the federation."""
        return dict([*settings_of(self.make).items()][1:])


def _number(data: FederatedData) -> int:
    return data.num_clients


GRAPHS: dict[str, Kind] = {
    "complete": Kind(kinds.complete, _number),
    "star": Kind(kinds.star, _number),
    "ring": Kind(kinds.ring, _number),
    "random": Kind(kinds.random, _number),
    "random_normal": Kind(kinds.random_normal, _number),
    "by_size": Kind(by_data.by_size, lambda data: data.train.sizes),
    "by_labels": Kind(by_data.by_labels, by_data.label_counts),
    "nearest": Kind(by_data.nearest, by_data.label_shares),
}


def parse_graph(text: str) -> tuple[str, dict[str, Any]]:
    """Parse a named graph: (kind, options).

    Raises `ConfigError` on an unknown kind or key (with the nearest known one), a value of the wrong type, and a
    text of another form.
    """
    wrong = ConfigError(f"graph = {text!r}: {EXAMPLE}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise wrong from None
    call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
    if not isinstance(call.func, ast.Name) or call.args:
        raise wrong
    name, options = call.func.id, dict[str, Any]()
    for keyword in call.keywords:
        if keyword.arg is None:
            raise wrong
        options[keyword.arg] = _value(keyword.value, wrong)
    if name not in GRAPHS:
        raise unknown("graph", name, GRAPHS)
    return name, validated(GRAPHS[name].options, options, f"graph {name}")


def _value(node: ast.expr, wrong: ConfigError) -> Any:
    if isinstance(node, ast.Name) and node.id in ("true", "false"):  # as experiment files write them
        return node.id == "true"
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise wrong from None


def graph_for(graph: Graph | str, data: FederatedData) -> Graph:
    """A method's graph for this federation: a named one is built, a given one is checked.

    Only the number of clients, their training sizes and their training labels are used. Raises `ConfigError` if the
    number of clients differs; warns (`GraphWarning`) if the graph is disconnected, naming isolated clients.
    """
    if isinstance(graph, str):
        name, options = parse_graph(graph)
        kind = GRAPHS[name]
        graph = kind.make(kind.of(data), **options)
    count = graph.num_clients
    require(count == data.num_clients, f"the graph has {count} clients, {data.name} has {data.num_clients}")
    if problem := graph.disconnected(data.clients):
        warnings.warn(problem, GraphWarning, stacklevel=2)
    return graph
