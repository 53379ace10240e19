from idiolect.metrics.registry import METRICS
from idiolect.report.texts import columns_text, metric_texts, settings_of, split_text
from tests.report.stores import experiment


def test_settings_are_pairs_without_folders(toy):
    exp = experiment(
        [{"name": "local", "label": "mine"}], cells=[{"data": {"name": "mnist", "folder": "/home/x/data"}}]
    )
    label, data, rounds, method = (settings_of(exp.cells[0])[i] for i in (0, 1, 2, 3))
    assert (label, data) == (("data", "mnist"), ("model", "mlr"))
    assert rounds == ("", "20 rounds, all clients a round, evaluated every 10 rounds")
    assert method[0] == "mine"
    assert method[1].startswith("local (rate = ")


def test_each_metric_is_told_once(toy):
    told = metric_texts([METRICS["accuracy"], METRICS["accuracy"], METRICS["mse"]])
    assert len(told) == 2
    assert all(f"- {text}" in columns_text(toy) for text in told[:1])
    assert split_text(toy) in columns_text(toy)
