"""What a cell measures, and what is refused before anything runs."""

from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.study.measuring import check_metrics, metrics_of
from tests.federations import classification
from tests.report.stores import experiment


def cell(metric="", published=()):
    return experiment([{"name": "fedavg", "published": published}], cells=[{"metric": metric}]).cells[0]


def names(*arguments, task="classification"):
    return [metric.name for metric in metrics_of(cell(*arguments), task)]


def test_the_first_named_is_compared_and_published_ones_are_measured():
    published = [{"model": "global", "value": 1.0, "metric": "ece"}, {"model": "global", "value": 1.0}]
    assert names() == ["accuracy", "macro-f1"]
    assert names("auroc, brier", published) == ["auroc", "brier", "accuracy", "macro-f1", "ece"]
    assert names("r2", task="regression") == ["r2", "mse"]


def test_what_is_refused():
    data = classification().data
    own = {name: replace(data.split(name), outputs=np.full(5, 3)) for name in ("train", "validation", "test")}
    check_metrics(cell("auroc"), data)
    check_metrics(cell("accuracy,auroc"), replace(data, **own))
    with pytest.raises(ConfigError, match="'auroc' compares classes that all clients share, but each client numbers"):
        check_metrics(cell("auroc"), replace(data, **own))
    with pytest.raises(ConfigError, match="metric 'r2' is for regression, but the data are for classification"):
        check_metrics(cell("r2"), data)
    with pytest.raises(ConfigError, match="metric 'mae' is for regression"):
        check_metrics(cell("", [{"model": "global", "value": 1.0, "metric": "mae"}]), data)
    with pytest.raises(ConfigError, match=r"cells\.0: unknown metric 'aurok'; did you mean 'auroc'"):
        cell("aurok")
