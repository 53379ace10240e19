"""Graphs by name, as experiment files write them: "complete", "random(density=0.3, seed=1)".

A function of this folder that `named` marks makes a graph; nothing else lists it. Its mark has the fields of
`NamedGraph` as facts.
"""

import ast
import warnings
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, cast

from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.plugins import Registry, facts_of, named_functions
from idiolect.core.settings import Setting, settings_of, validated
from idiolect.data.federated import FederatedData
from idiolect.graphs.graph import Graph, GraphWarning

EXAMPLE = 'write a kind, or kind(key=value, ...), such as "random(density=0.3, seed=1)"'


@dataclass(frozen=True)
class NamedGraph:
    """A named graph: its function, and what computes that function's first argument from the federation.

    of_labels: whether that is made of the clients' labels, which no hub sees.
    """

    make: Callable[..., Graph]
    of: Callable[[FederatedData], Any]
    of_labels: bool = False

    @property
    def options(self) -> dict[str, Setting]:
        """What may be given; the function's first argument is of the federation."""
        return dict([*settings_of(self.make).items()][1:])


def _own() -> dict[str, NamedGraph]:
    return {name: NamedGraph(make, **facts) for name, (make, facts) in named_functions("idiolect.graphs").items()}


def _provided(name: str, make: object) -> NamedGraph:
    """A graph from another package: a function that is marked by `named`."""
    return NamedGraph(cast("Callable[..., Graph]", make), **facts_of(make, name, ", of=..."))


GRAPHS: MutableMapping[str, NamedGraph] = Registry("idiolect.graphs", _own, _provided)


def parse_graph(text: str) -> tuple[str, dict[str, Any]]:
    """Parse a named graph: (kind, options).

    Raises:
        ConfigError: On an unknown kind or key (with the nearest known one), a value of the wrong type, and a text of
            another form.
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
    """Return a method's graph for this federation: a named one is built, a given one is checked.

    Only the number of clients, their training sizes and their training labels are used. Warns (`GraphWarning`) if the
    graph is disconnected, naming isolated clients.

    Raises:
        ConfigError: If the number of clients differs.
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
