import numpy as np

from idiolect.metrics.registry import METRICS
from idiolect.report.crowd import thinned
from idiolect.report.looks import COLOURS
from idiolect.study.analyse.outcomes import Curve

ACCURACY = METRICS["accuracy"]


def curve(method, model, last):
    values = np.array([0.1, last])
    return Curve("c", method, model, "test", np.array([0.0, 1.0]), values, values, values, values)


def many(methods, models=("personal", "global")):
    return [curve(f"m{i}", model, i / 100) for i in range(methods) for model in models]


def test_few_lines_are_all_drawn():
    crowd = thinned(many(3), (), ACCURACY, 16)
    assert (len(crowd.lines), crowd.muted, crowd.told) == (6, frozenset(), "")


def test_many_models_leave_each_methods_first():
    crowd = thinned(many(10), (), ACCURACY, 16)
    assert crowd.lines == {(f"m{i}", "personal") for i in range(10)}
    assert not crowd.muted
    assert crowd.told == "drawn: each method's first model (10 other lines left out)"


def test_of_many_methods_the_best_and_local_keep_their_colour():
    crowd = thinned(many(24), (), ACCURACY, 16, "m0")
    kept = {f"m{i}" for i in range(24)} - crowd.muted
    assert kept == {"m0", *(f"m{i}" for i in range(24 - len(COLOURS), 24))}
    assert crowd.grey == "others"
    assert crowd.told.endswith("in colour: the 7 methods with the best last score, and Local")
    worst = thinned(many(24), (), METRICS["mse"], 16)
    assert "m0" not in worst.muted
    assert "m23" in worst.muted


def test_settings_that_were_not_chosen_are_no_crowd():
    crowd = thinned(many(24, ("personal",)), {f"m{i}" for i in range(20)}, ACCURACY, 16)
    assert len(crowd.muted) == 20
    assert crowd.grey == "not chosen"
