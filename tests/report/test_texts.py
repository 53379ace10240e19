from idiolect.report.texts import settings_of
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
