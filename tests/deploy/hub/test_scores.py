"""Scores over all sites, of the sums that each has sent, against scikit-learn on all samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from idiolect.client.objective import Batch, objective_of
from idiolect.core.errors import DataError
from idiolect.deploy.hub.scores import pooled_scores
from idiolect.deploy.messages import Message
from idiolect.deploy.trees import named
from idiolect.metrics.base import wide
from idiolect.metrics.registry import measured

METRICS = measured("classification", ("accuracy", "macro-f1", "auroc"))


def answer_of(labels, said):
    """What a site sends whose model says `said` of samples with these labels."""
    outputs = np.eye(3, dtype=np.float32)[said]
    objective = objective_of(_Given(), "classification")
    batch = Batch(jnp.asarray(outputs), jnp.asarray(labels, jnp.int32), jnp.ones(len(labels)), None)
    scores = objective.scores(None, batch, METRICS)
    values = {}
    for metric in METRICS:
        if metric.name in scores.sums:
            sums = wide(jax.tree.map(lambda leaf: leaf[None], scores.sums[metric.name]))
            values[metric.name] = [float(part[0]) for part in metric.finish(sums, np.array([len(labels)]))]
        else:
            values[metric.name] = [0.25, 1.0]
    told = {"count": len(labels), "loss": float(scores.loss), "values": values}
    return Message({"scores": {"m": {"test": told}}}, named({"m": {"test": scores.sums}}))


class _Given(eqx.Module):
    """A model whose outputs are its inputs."""

    def __call__(self, x):
        return x


LABELS = [[0, 1, 1, 2], [2, 2], [0, 0, 1, 1, 1]]
SAID = [[0, 1, 2, 2], [2, 1], [0, 1, 1, 1, 1]]


def test_sums_give_what_all_samples_together_give():
    answers = {0: answer_of(LABELS[0], SAID[0]), 2: answer_of(LABELS[2], SAID[2]), 3: answer_of(LABELS[1], SAID[1])}
    (scores,) = pooled_scores(answers, 4, ["m"], ["test"], METRICS, 3)
    labels, said = [*LABELS[0], *LABELS[2], *LABELS[1]], [*SAID[0], *SAID[2], *SAID[1]]
    assert scores.count.tolist() == [4, 0, 5, 2]
    assert scores.pooled["accuracy"] == pytest.approx(accuracy_score(labels, said))
    assert scores.pooled["macro-f1"] == pytest.approx(f1_score(labels, said, average="macro"))
    assert np.isnan(scores.pooled["auroc"])
    np.testing.assert_allclose(scores.values["accuracy"], [0.75, np.nan, 0.8, 0.5])
    np.testing.assert_allclose(scores.values["auroc"], [0.25, np.nan, 0.25, 0.25])


def test_without_answers_there_is_no_score():
    (scores,) = pooled_scores({}, 2, ["m"], ["test"], METRICS, 3)
    assert scores.count.tolist() == [0, 0]
    assert np.isnan(scores.loss).all()
    assert np.isnan(scores.pooled["accuracy"])


def test_what_cannot_be_read_is_refused():
    good = answer_of(LABELS[0], SAID[0])
    bad = Message({"scores": {"m": {"test": {"count": "x", "loss": 0.0, "values": {}}}}})
    with pytest.raises(DataError, match=r"its scores cannot be read: scores\.m\.test\.count: .*integer"):
        pooled_scores({0: good, 1: bad}, 2, ["m"], ["test"], METRICS, 3)
    fewer = Message({"scores": {"m": {"test": {"count": 4, "loss": 0.0, "values": {"accuracy": [3, 4]}}}}})
    with pytest.raises(DataError, match="its scores of model 'm' on the test split have no macro-f1"):
        pooled_scores({0: good, 1: fewer}, 2, ["m"], ["test"], METRICS, 3)
    wrong = Message(good.header, {**good.vectors, "m/test/macro-f1": np.zeros((3, 9), np.int32)})
    with pytest.raises(DataError, match="its sums of macro-f1: 'value' has shape"):
        pooled_scores({0: wrong}, 1, ["m"], ["test"], METRICS, 3)
