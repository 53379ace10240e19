import pytest

from idiolect.core.errors import ConfigError
from idiolect.metrics.base import OfSamples, OfSums
from idiolect.metrics.registry import ALWAYS, METRICS, describe_metrics, measured, metric_of, names_in


def test_every_metric_says_what_it_is():
    assert len({metric.column for metric in METRICS.values()}) == len(METRICS)
    for name, metric in METRICS.items():
        assert isinstance(metric, OfSums | OfSamples)
        assert name == metric.name == name.lower()
        assert metric.key == name.replace("-", "_")
        assert describe_metrics()[name].startswith(f"{metric.task}: ")
        assert metric.unit == (100 if metric.percent else 1)


def test_what_is_measured():
    def names(*arguments):
        return [metric.name for metric in measured(*arguments)]

    assert names("classification") == ["accuracy", "macro-f1"]
    assert names("regression") == ["mse"]
    assert names("classification", ("auroc", "macro-f1")) == ["auroc", "macro-f1", "accuracy"]
    assert names("classification", (), ("ece", "accuracy")) == ["accuracy", "macro-f1", "ece"]
    assert all(METRICS[name].task == task for task, always in ALWAYS.items() for name in always)


def test_what_is_unknown_or_of_the_other_task_is_named():
    assert names_in("auroc, ece,") == ("auroc", "ece")
    assert names_in("") == ()
    with pytest.raises(ConfigError, match="unknown metric ','"):
        names_in(",")
    with pytest.raises(ConfigError, match="unknown metric 'aurok'; did you mean 'auroc'"):
        names_in("ece,aurok")
    with pytest.raises(ConfigError, match="unknown metric 'msee'; did you mean 'mse'"):
        metric_of("msee", "regression")
    with pytest.raises(ConfigError, match="metric 'auroc' is for classification, but the data are for regression"):
        measured("regression", ("auroc",))
