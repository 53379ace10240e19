from dataclasses import replace

from idiolect.report.html.of_results import whole_of
from idiolect.report.html.target import target_of
from tests.report.html.made import compared


def test_the_round_in_which_a_mean_reaches_the_shared_models_end(tmp_path):
    part = whole_of(compared(tmp_path), "").parts[0]
    target = target_of(part)
    assert round(target.value, 6) == 0.5
    assert target.rounds == {
        ("local", "local"): 10, ("fedavg", "global"): 10, ("ditto", "personal"): 10, ("ditto", "global"): None
    }  # fmt: skip
    assert "reaches 50.00 %, the score of \u2068FedAvg, global\u2069 at its end" in target.help
    assert [target.shown(line)[0] for line in part.lines] == ["10", "10", "10", "—"]
    assert target_of(replace(part, quantities=())) is None
