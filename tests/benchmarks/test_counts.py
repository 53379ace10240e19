"""Operation and byte counts against the models themselves and against arithmetic by hand."""

import jax
import pytest

from benchmarks.counts import gradient_counts, layers, scoring_counts
from benchmarks.workloads import WORKLOADS, Workload, named
from idiolect.core.random import model_key
from idiolect.models import build


@pytest.mark.parametrize("work", WORKLOADS, ids=lambda work: work.name)
def test_the_layers_hold_the_models_parameters(work: Workload) -> None:
    model = build(work.model, work.shape, work.classes, "classification", model_key(0))
    parameters = sum(leaf.size for leaf in jax.tree.leaves(model))
    assert sum(layer.parameters for layer in layers(work.model, work.shape, work.classes)) == parameters


def test_a_gradient_of_logistic_regression_is_two_products() -> None:
    counts = gradient_counts({"name": "mlr"}, (784,), 10, gradients=3, updates=2, drawn=3)
    assert counts.operations == 3 * 2 * (2 * 784 * 10)
    assert counts.bytes == 4 * (3 * 784 + 2 * 2 * 7850)


def test_one_hidden_layer_passes_back_through_the_second_alone() -> None:
    counts = gradient_counts({"name": "mlp", "hidden": [200]}, (784,), 10, gradients=1, updates=1, drawn=1)
    assert counts.operations == 2 * (2 * 784 * 200) + 3 * (2 * 200 * 10)


def test_convolutions_count_every_place() -> None:
    work = named("W4")
    found = [layer.operations for layer in layers(work.model, work.shape, 10)]
    assert found == [2 * 24 * 24 * 25 * 32, 2 * 8 * 8 * 800 * 64, 2 * 1024 * 512, 2 * 512 * 10]


def test_scores_take_one_pass() -> None:
    counts = scoring_counts({"name": "mlr"}, (784,), 10, samples=100)
    assert counts.operations == 100 * 2 * 784 * 10
    assert counts.bytes == 4 * (100 * 784 + 7850)


@pytest.mark.parametrize(
    ("name", "gradients"),
    [("W1", 20 * 5 * 20), ("W3", 5 * 600), ("W5", 50 * 600), ("W6p", 64), ("W7", 5 * 250), ("W8", 0)],
)
def test_gradients_of_a_client(name: str, gradients: int) -> None:
    assert named(name).gradients == gradients


def test_the_skip_leaves_a_quarter_to_do() -> None:
    assert named("W1").counts.operations == 4 * named("W1s").counts.operations
    assert named("W1").trained == named("W1s").trained == 20
