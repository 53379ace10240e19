"""Graphs of clients: by shape, from the clients' data, or your own; their spectrum, and the mixing step on them.

Public is what `__all__` lists; the modules below this package are internal and may change.
"""

from idiolect.graphs.convert import from_dense, from_edges, from_networkx, from_scipy
from idiolect.graphs.generators import (
    by_labels,
    by_size,
    complete,
    label_counts,
    label_shares,
    nearest,
    random,
    random_normal,
    ring,
    star,
)
from idiolect.graphs.graph import Graph, GraphWarning, MixingLimit
from idiolect.graphs.mixing import mix, mixed
from idiolect.graphs.registry import GRAPHS, graph_for, parse_graph

__all__ = [
    "GRAPHS",
    "Graph",
    "GraphWarning",
    "MixingLimit",
    "by_labels",
    "by_size",
    "complete",
    "from_dense",
    "from_edges",
    "from_networkx",
    "from_scipy",
    "graph_for",
    "label_counts",
    "label_shares",
    "mix",
    "mixed",
    "nearest",
    "parse_graph",
    "random",
    "random_normal",
    "ring",
    "star",
]
