from idiolect.report.html.of_results import whole_of
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.html.made import compared
from tests.report.stores import experiment


def test_what_is_told_in_words(tmp_path):
    results = compared(tmp_path, source="A paper", description="What\n was done.", protocol="as-written")
    whole = whole_of(results, "idiolect compare")
    assert (whole.title, whole.source, whole.description) == ("A toy", "A paper", "What was done.")
    assert ("git commit", "0123456789ab") in whole.made_with
    part = whole.parts[0]
    assert part.settings[0] == ("data", "synthetic")
    assert part.audit == ("No leak found: none of 1,200 test samples has an exact copy in training data.",)
    assert [quantity.title for quantity in part.quantities] == ["test accuracy", "training loss", "test loss"]
    assert part.local == ("local", "local")
    assert part.shared == ("fedavg", "global")


def test_nothing_run(tmp_path):
    whole = whole_of(Results(Store(tmp_path), experiment([{"name": "fedavg"}])), "")
    assert whole.missing == ("Nothing was run yet: there are no scores to show.",)
    assert whole.made_with == (("", "nothing was run yet"),)
    assert whole.parts[0].clients == ()
