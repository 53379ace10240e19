from idiolect.report.html.of_results import whole_of
from idiolect.report.html.standing import standing_of
from tests.report.html.made import compared


def stood(results):
    return standing_of(whole_of(results, "").parts[0])


def test_references_are_training_alone_and_the_shared_model(tmp_path):
    standing = stood(compared(tmp_path))
    assert (standing.best.method, standing.best.model) == ("ditto", "personal")
    assert round(standing.against_local.difference.mean, 6) == 5
    assert round(standing.against_shared.difference.mean, 6) == 15
    assert standing.ties == ()
    assert (standing.loser.losers, standing.loser.clients) == (0, 3)


def test_all_samples_in_one_place_are_no_federation(tmp_path):
    methods = ({"name": "local"}, {"name": "fedavg"}, {"name": "ditto"})
    part = whole_of(compared(tmp_path, gain=-0.02, methods=methods), "").parts[0]
    standing = standing_of(part)
    assert (standing.best.method, standing.federated.method) == ("local", "ditto")
    assert standing.loser.told in (0, -1)


def test_settings_that_were_not_chosen_do_not_stand(tuned):
    standing = stood(tuned)
    assert (standing.best.method, standing.federated.method) == ("local", "good")
    assert standing.ties == ()


def test_no_score_no_standing(timed, said):
    assert stood(timed) is None
    assert standing_of(whole_of(said, "").parts[1]) is None
