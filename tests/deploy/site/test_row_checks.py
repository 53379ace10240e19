"""What is counted of a site's rows before it sends anything, and what stays when its floors are not kept."""

import pytest

from idiolect.algorithms.registry import ALGORITHMS, build
from idiolect.client.samples import to_device
from idiolect.core.errors import DataError
from idiolect.deploy.kind import Kind
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.programs import programs_of
from idiolect.deploy.site.row_checks import check_message, check_run, labels_of, rows_behind, withheld
from idiolect.deploy.terms import Place, Terms
from idiolect.metrics.registry import measured
from tests import modalities
from tests.deploy.federation import LOOSE, sites_of
from tests.deploy.site.test_extraction import DATA, VIEW, call, federation
from tests.deploy.test_terms import PLACE, TERMS

WEST = DATA.select(lambda index: DATA.clients[index] == "west")


def programs(method, model, data=WEST):
    terms = Terms.model_validate({**TERMS, "method": method, "model": model, "kind": Kind.of(data).to_dict()})
    return programs_of(terms, Place.model_validate(PLACE), data)


@pytest.mark.parametrize("name", sorted(ALGORITHMS.keys() - {"boosted-intercept"}))
def test_defaults_of_methods_keep_the_floors_or_say_what_to_do(name):
    """With 178 rows: only methods whose message is one small batch, or counts of single rows, are refused."""
    few = {"afl", "fedrep"}
    if name not in few:
        check_run(Floors(), WEST, build(name))
        return
    with pytest.raises(DataError, match=r"rows_per_message = 50, but a message of \w+ is made of about 20 rows"):
        check_run(Floors(), WEST, build(name))
    check_run(Floors(), WEST, build({"name": name, "batch_size": 0}))


def test_histograms_with_cells_of_single_rows_are_refused():
    with pytest.raises(DataError, match=r"floors.count = 5, but a number that .* sends can be of 1 row"):
        check_run(Floors(), WEST, build("boosted-intercept"))
    check_run(Floors(count=1), WEST, build("boosted-intercept"))


def test_a_method_s_settings_are_checked_with_its_defaults():
    with pytest.raises(DataError, match=r"floors.settings.fedavg.rate = 0.1 to 1, but fedavg has rate = 0.02"):
        check_run(Floors(settings={"fedavg.rate": (0.1, 1)}), WEST, build("fedavg"))


@pytest.mark.parametrize(
    ("method", "model", "good"),
    [
        ({"name": "fedavg"}, {"name": "mlr"}, True),
        ({"name": "fedavg"}, {"name": "mlp", "hidden": [64]}, True),
        ({"name": "fedavg", "local_steps": 1}, {"name": "mlp", "hidden": [64]}, False),  # 20 rows, 30 features
        ({"name": "fedavg", "local_steps": 1}, {"name": "mlp", "hidden": [16]}, True),
    ],
)
def test_more_numbers_than_rows_are_refused(method, model, good):
    made = programs(method, model)
    message = made.sent(to_device(WEST.train))
    check_message(LOOSE, WEST, made, message)
    if good:
        check_message(Floors(), WEST, made, message)
        return
    with pytest.raises(DataError, match=r"floors.solvable = false, but a message of fedavg has 20 rows and a matrix"):
        check_message(Floors(), WEST, made, message)


def test_sums_of_curvature_need_more_rows_than_inputs():
    small = federation(rows=40)  # 26 for training, and 31 numbers per output
    own = small.select(lambda index: small.clients[index] == "west")
    for data, good in ((own, False), (WEST, True)):
        made = programs({"name": "fedavg-intercept"}, {"name": "mlr"}, data)
        message = made.sent(to_device(data.train))
        assert made.algorithm.rank(made.start, message) == 31
        if good:
            check_message(Floors(), data, made, message)
        else:
            with pytest.raises(DataError, match=r"floors\.solvable"):
                check_message(Floors(), data, made, message)


def test_the_rows_of_a_rare_modality_are_what_counts():
    data = modalities.data_of((("acc",), ("text",)), sizes=(8, 8))
    assert all(rows <= data.train.count for rows, _ in rows_behind(data, build("mmfl")))
    ((rows, used), *_) = rows_behind(data, build({"name": "mmfl", "batch_size": 0}))
    assert used is not None
    assert used.step == used.message == rows


def test_scores_of_few_rows_stay_at_the_site(caplog, tmp_path):
    metrics = measured(WEST.task)
    assert withheld(Floors(), WEST, ("train", "test"), metrics) == {}
    many = Floors(count=60)
    assert {*withheld(many, WEST, ("train", "test"), metrics)} == {"test"}  # 69 rows, about half of each class
    accuracy = [metric for metric in metrics if not metric.by_class]
    assert withheld(many, WEST, ("train", "test"), accuracy) == {}
    assert "the test split has 69 rows" in withheld(Floors(count=70), WEST, ("test",), accuracy)["test"]
    assert sum(labels_of(WEST, "test").values()) == WEST.test.count
    site = sites_of(tmp_path, DATA, replace_count(60))["west"]
    method = {"name": "fedavg"}
    call(site, "begin", method=method)
    answer = call(site, "evaluate", method=method, vectors=VIEW, number=2, round=0, names=["global"])
    assert {*answer.header["scores"]["global"]} == {"train"}
    assert not any("test" in name for name in answer.vectors)
    assert answer.header["withheld"]["test"].startswith("site 'west' refuses: floors.count = 60")
    assert answer.header["withheld"]["test"] in [record.message for record in caplog.records]


def replace_count(count):
    return LOOSE.model_copy(update={"count": count})
