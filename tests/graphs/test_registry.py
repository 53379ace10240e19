"""Graphs by name: what a text makes, and what it is refused for."""

import numpy as np
import pytest

from idiolect import graphs
from idiolect.core.errors import ConfigError
from idiolect.core.plugins import named
from idiolect.graphs import GRAPHS, GraphWarning, graph_for, parse_graph
from idiolect.graphs.registry import _provided
from tests.federations import classification, federation, labelled, quadratics


def dense(graph):
    return graph.adjacency().toarray()


@pytest.fixture(scope="module")
def data():
    return classification().data


def test_a_name_is_the_function_of_that_name_on_the_federation(data):
    sizes, counts = data.train.sizes, graphs.label_counts(data)
    for name, expected in {
        "complete": graphs.complete(5),
        "complete(weight=0.5)": graphs.complete(5, weight=0.5),
        "star(weight=2)": graphs.star(5, weight=2.0),
        " ring() ": graphs.ring(5),
        "random(density=0.3, seed=7)": graphs.random(5, density=0.3, seed=7),
        "random_normal(threshold=0.25, seed=2)": graphs.random_normal(5, threshold=0.25, seed=2),
        "by_size(threshold=10)": graphs.by_size(sizes, threshold=10.0),
        "by_labels(full=3)": graphs.by_labels(counts, full=3),
        "nearest(neighbours=2.0, connected=false)": graphs.nearest(graphs.label_shares(data), neighbours=2),
    }.items():
        np.testing.assert_array_equal(dense(graph_for(name, data)), dense(expected))
    assert {parse_graph(name)[0] for name in GRAPHS} == {*GRAPHS}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("compleet", "unknown graph 'compleet'; did you mean 'complete'"),
        ("random(densty=0.3)", "unknown key of graph random 'densty'; did you mean 'density'"),
        ("random(num_clients=3)", "unknown key of graph random 'num_clients'"),
        ("random(density='high')", "graph random: density = 'high' must be a number"),
        ("random(seed=0.5)", "graph random: seed = 0.5 must be a whole number"),
        ("random(seed=1e999)", "graph random: seed = inf must be a whole number"),
        ("by_labels(connected=1)", "graph by_labels: connected = 1 must be true or false"),
        ("random(0.3)", r"graph = 'random\(0.3\)': write a kind, or kind\(key=value"),
        ("random(density=0.3", "write a kind, or kind"),
        ("random(**options)", "write a kind, or kind"),
        ("random(density=other)", "write a kind, or kind"),
        ("random(density=f())", "write a kind, or kind"),
        ("graphs.random()", "write a kind, or kind"),
        ("ring; star", "write a kind, or kind"),
        ("", "write a kind, or kind"),
        ("a\0b", "write a kind, or kind"),
    ],
)
def test_a_wrong_name_is_refused_before_any_data_are_there(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_graph(text)


def test_only_training_sizes_and_labels_are_looked_at():
    """Other features, other test data, other validation: the same graph."""
    rng = np.random.default_rng(0)
    train, other = labelled((9, 4, 17, 6), rng), labelled((3, 3, 3, 3), rng)
    changed = type(train)(train.x + 1, train.y, train.offsets)
    classes = {"task": "classification", "classes": ("a", "b", "c")}
    one, two = federation(train, **classes), federation(changed, other, **classes)
    for name in ("by_size", "by_labels", "nearest(neighbours=2)"):
        np.testing.assert_array_equal(dense(graph_for(name, one)), dense(graph_for(name, two)))


def test_the_user_s_own_graph_must_have_the_federation_s_clients(data):
    own = graphs.ring(5)
    assert graph_for(own, data) is own
    with pytest.raises(ConfigError, match="the graph has 6 clients, small has 5"):
        graph_for(graphs.ring(6), data)


def test_a_graph_in_parts_warns_and_names_the_isolated(data):
    with pytest.warns(GraphWarning, match=r"3 components, .* without any neighbour: 'c1', 'c4'"):
        graph_for(graphs.from_edges([(0, 2, 1.0), (2, 3, 1.0)], 5), data)
    with pytest.raises(ConfigError, match="components"):
        graph_for("random_normal(threshold=1, connected=true)", data)


def test_a_graph_by_labels_needs_labels():
    with pytest.raises(ConfigError, match="is a regression"):
        graph_for("by_labels", quadratics().data)


def test_the_graphs_are_the_marked_functions_and_those_by_labels_say_so():
    assert [*GRAPHS] == ["complete", "star", "ring", "random", "random_normal", "by_size", "by_labels", "nearest"]
    assert [name for name, kind in GRAPHS.items() if kind.of_labels] == ["by_labels", "nearest"]


def test_another_package_brings_a_marked_function():
    @named("pairs", of=lambda data: data.num_clients)
    def pairs(clients, *, weight: float = 1.0):
        return graphs.from_edges([(0, clients - 1, weight)], clients)

    kind = _provided("pairs", pairs)
    assert kind.make(kind.of(classification().data)).num_edges == 1
    assert kind.options.keys() == {"weight"}
    assert not kind.of_labels
    for other in (3, print, dense):
        with pytest.raises(ConfigError, match=r"it is not a function marked by named\('pairs', of="):
            _provided("pairs", other)
