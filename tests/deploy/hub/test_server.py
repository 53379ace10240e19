"""A federation without samples."""

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.deploy.hub.server import check_runs_at_sites, unseen_data
from idiolect.deploy.kind import Kind
from tests import modalities
from tests.deploy.federation import data_of, experiment_of


def test_it_has_names_counts_and_shapes_and_no_sample():
    real = data_of()
    counts = {name: {"train": 3 + i, "test": 2} for i, name in enumerate(real.clients)}
    unseen = unseen_data(Kind.of(real), counts)
    assert (unseen.clients, unseen.task, unseen.classes) == (real.clients, real.task, real.classes)
    assert unseen.feature_shape == real.feature_shape
    assert unseen.train.sizes.tolist() == [3, 4, 5]
    assert (unseen.validation.count, unseen.test.count) == (0, 6)
    assert not np.any(unseen.train.client(0)[0])
    with pytest.raises(DataError, match="never stored together"):
        _ = unseen.train.x


def test_modalities_and_targets_are_those_of_the_kind():
    real = modalities.data_of()
    unseen = unseen_data(Kind.of(real), {name: {"train": 1} for name in real.clients})
    assert unseen.modalities == real.modalities


def test_a_site_without_training_samples_is_refused():
    with pytest.raises(DataError, match="site 'a' has no training samples"):
        unseen_data(Kind.of(data_of()), {"a": {"train": 0, "test": 3}})


@pytest.mark.parametrize(
    ("graph", "labels"),
    [
        ("by_labels", True),
        ("nearest(neighbours=1)", True),
        (" nearest ()", True),
        ("by_size", False),
        ("ring()", False),
    ],
)
def test_a_graph_of_the_clients_labels_is_refused(graph, labels):
    cell = experiment_of([{"name": "fedu", "graph": graph}]).cells[0]
    if not labels:
        return check_runs_at_sites(cell, cell.methods[0])
    with pytest.raises(ConfigError, match="is made of all clients' labels, which no hub sees"):
        check_runs_at_sites(cell, cell.methods[0])


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("global", {}, "global pools all clients' samples"),
        ("fedavg", {"model": {"name": "mlr", "class_weights": "balanced"}}, "counts the labels of all clients"),
        ("fedavg", {"rounds": "auto"}, "rounds = 'auto' goes with simulation, .* give rounds a number"),
        ("fedavg", {"rate": "auto"}, "rate = 'auto' goes with simulation; give each method its own rate"),
        ("fedavg", {"rate": 0.5}, "rate = 0.5 goes with simulation"),
    ],
)
def test_what_needs_all_samples_in_one_place_is_refused(method, settings, message):
    cell = experiment_of([method], **settings).cells[0]
    with pytest.raises(ConfigError, match=message):
        check_runs_at_sites(cell, cell.methods[0])
