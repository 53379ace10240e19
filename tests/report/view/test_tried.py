from idiolect.report.view.as_json import plain
from idiolect.report.view.tried import dimensions, tuned_sweep


def test_one_axis_for_each_hyper_parameter_that_differs():
    values = [
        {"rate": 0.001, "steps": 5, "kind": "a"},
        {"rate": 0.1, "steps": 5, "kind": "b"},
        {"rate": 1.0, "steps": 5},
    ]
    runs = [{"method": "m", "values": each, "score": score, "chosen": score == 0.9}
            for each, score in zip(values, (0.9, float("nan"), 0.1), strict=True)]  # fmt: skip
    found = plain(dimensions(runs, "validation accuracy"))
    assert found["dimensions"] == [
        {"title": "rate", "log": True},
        {"title": "kind", "log": False, "values": ["a", "b"]},
    ]
    assert [run["values"] for run in found["runs"]] == [[0.001, "a"], [0.1, "b"], [1, None]]
    assert [run["score"] for run in found["runs"]] == [0.9, None, 0.1]
    assert [run["chosen"] for run in found["runs"]] == [True, False, False]
    assert dimensions([], "") is None


def test_a_tuned_comparison_is_a_sweep(tuned, toy):
    found = tuned_sweep(tuned, tuned.experiment.cells[0])
    assert [(run["method"], run["chosen"]) for run in found["runs"]] == [
        ("bad", False),
        ("good", True),
        ("local", True),
    ]
    assert found["runs"][1]["score"] == 0.725
    assert tuned_sweep(toy, toy.experiment.cells[0]) is None
