import math
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.study.spec.experiment import (
    check_metrics,
    comparison_of,
    digest,
    experiment_of,
    load_experiment,
    metrics_of,
    own_or_named,
)
from tests.engine import FEDAVG, LOCAL, experiment
from tests.federations import classification
from tests.report.stores import experiment as stored

METHODS = [{"name": "pfedme"}, {"name": "fedavg", "label": "averaging"}, {"name": "local"}]
BASE = {
    "name": "e",
    "cells": [{"id": "a", "data": {"name": "synthetic"}, "model": {"name": "mlr"}, "methods": METHODS}],
}


def refused(match, **changes):
    with pytest.raises(ConfigError, match=match) as caught:
        experiment_of({**BASE, **changes}, "here")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("here: ")


def cell(**changes):
    return [{**BASE["cells"][0], **changes}]


def method(**changes):
    return cell(methods=[{"name": "pfedme", **changes}])


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"seed": 3}, "here: unknown key 'seed'; did you mean 'seeds'"),
        ({"seeds": 0}, "seeds = 0"),
        ({"first_seed": -1}, "first_seed = -1"),
        ({"protocol": "as-publised"}, "protocol = 'as-publised'.*'as-written' or 'as-published'"),
        ({"cells": []}, "cells"),
        ({"cells": 3}, "cells = 3"),
        ({"cells": [3]}, "here: cell 1 = 3 must be a table"),
        ({"cells": cell() + cell()}, "two cells are called 'a'"),
        ({"cells": cell(round=3)}, "unknown key 'round'; did you mean 'rounds'"),
        ({"cells": cell(rounds=0)}, "here: rounds = 0 must be at least 1"),
        ({"cells": cell(rounds="many")}, "here: rounds = 'many' must be a whole number"),
        ({"cells": cell(cohort=0)}, "here: cohort = 0 must be greater than 0"),
        ({"cells": cell(cohort=math.nan)}, r"here: cohort = nan must be a finite number"),
        ({"cells": cell(eval_every=0)}, r"eval_every = 0"),
        ({"cells": cell(sampling="bernoulli")}, "sampling = 'bernoulli'.*'fixed' or 'binomial'"),
        ({"cells": cell(splits=["train"])}, "splits must contain 'test'"),
        ({"cells": cell(splits=["tset", "test"])}, "'tset'"),
        ({"cells": cell(select="best-validation")}, "needs 'validation' among its splits"),
        ({"cells": cell(select="best-test")}, "exists only in the protocol 'as-published'"),
        ({"cells": cell(methods=[])}, r"here: methods = \[\] must have at least 1 entry"),
        ({"cells": cell(methods=[{"name": "local"}, {"name": "local"}])}, "two methods are labelled 'local'"),
        ({"cells": [{"id": "a"}]}, r"here: data is missing"),
        ({"cells": method(name="pfedmee")}, "unknown method 'pfedmee'; did you mean 'pfedme'"),
        ({"cells": method(prox_wieght=3)}, "unknown key of method pfedme 'prox_wieght'; did you mean 'prox_weight'"),
        ({"cells": method(rate="fast")}, "pfedme: rate = 'fast' must be a number"),
        ({"cells": method(rate=-1)}, "pfedme: rate = -1.0 must be greater than 0"),
        ({"cells": method(rate=math.inf)}, r"method 'pfedme': rate = inf must be a finite number"),
        ({"cells": method(local_steps=math.inf)}, r"local_steps = inf must be a finite number"),
        ({"cells": method(local_steps=0)}, "pfedme: local_steps = 0"),
        ({"cells": method(inner_steps=0)}, "pfedme: inner_steps = 0"),
        ({"cells": method(batch_size=2.5)}, "pfedme: batch_size = 2.5 must be a whole number"),
        ({"cells": method(prox_weight=0)}, "pfedme: prox_weight = 0"),
        ({"cells": method(server_step=-0.5)}, "pfedme: server_step = -0.5"),
        ({"cells": method(published=[{"model": "persnal", "value": 1}])}, "'persnal'; did you mean 'personal'"),
        (
            {"cells": method(published=[{"model": "personal", "value": 1, "metric": "f1"}])},
            "unknown metric 'f1'; known: .*macro-f1",
        ),
        ({"cells": method(published=[{"model": "personal", "valeu": 1}])}, "value is missing|unknown key 'valeu'"),
        ({"defaults": 3}, "defaults = 3 must be a table"),
    ],
)
def test_what_is_wrong_is_one_line_naming_the_key(changes, match):
    refused(match, **changes)


def test_best_test_exists_as_published():
    found = experiment_of({**BASE, "protocol": "as-published", "cells": cell(select="best-test")}, "here")
    assert found.cells[0].select == "best-test"


def test_defaults_fill_in_and_names_stand_for_specifications():
    values = {**BASE, "defaults": {"rounds": 7, "cohort": 3}, "cells": cell(data="mnist", model="mlp", cohort=2)}
    found = experiment_of(values, "here").cells[0]
    assert (found.rounds, found.cohort, found.data, found.model) == (7, 2, {"name": "mnist"}, {"name": "mlp"})


def test_only():
    whole = experiment_of(
        {**BASE, "cells": [*cell(id="mnist-mlr"), *cell(id="mnist-dnn"), *cell(id="other")]}, "here"
    )
    assert [c.id for c in whole.only(()).cells] == ["mnist-mlr", "mnist-dnn", "other"]
    assert [c.id for c in whole.only(("mnist",)).cells] == ["mnist-mlr", "mnist-dnn"]
    chosen = whole.only(("mnist-mlr/averaging", "other"))
    assert [(c.id, [m.title for m in c.methods]) for c in chosen.cells] == [
        ("mnist-mlr", ["averaging"]),
        ("other", ["pfedme", "averaging", "local"]),
    ]
    assert [len(c.methods) for c in whole.only(("local",)).cells] == [1, 1, 1]
    with pytest.raises(ConfigError, match="unknown cell or method 'othr'; did you mean 'other'"):
        whole.only(("mnist", "othr"))
    with pytest.raises(ConfigError, match="did you mean 'mnist-mlr/pfedme'"):
        whole.only(("mnist-mlr/pfedmo",))
    with pytest.raises(ConfigError, match="unknown cell 'mnist'"):
        whole.cell("mnist")


def test_files(tmp_path: Path):
    good = tmp_path / "mine.toml"
    good.write_text(
        '[[cells]]\nid = "a"\ndata = "synthetic"\nmodel = "mlr"\n[[cells.methods]]\nname = "local"\n',
        encoding="utf-8",
    )
    assert load_experiment(good).name == "mine"
    with pytest.raises(ConfigError, match=r"no such experiment file: .*absent\.toml"):
        load_experiment(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="cannot read"):
        load_experiment(tmp_path)
    (tmp_path / "bad.toml").write_text("cells = [")
    with pytest.raises(ConfigError, match=r"bad\.toml is not valid TOML"):
        load_experiment(tmp_path / "bad.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe4"')
    with pytest.raises(ConfigError, match=r"cannot read .*latin\.toml"):
        load_experiment(tmp_path / "latin.toml")


def test_seed_list_and_digest():
    assert experiment_of({**BASE, "seeds": 3, "first_seed": 5}, "here").seed_list == (5, 6, 7)
    a, b = experiment(FEDAVG, LOCAL), experiment(LOCAL, FEDAVG)
    assert digest({"x": 1, "y": 2}) == digest({"y": 2, "x": 1}) != digest({"x": 1, "y": 3})
    assert digest(a.model_dump(mode="json")) != digest(b.model_dump(mode="json"))


MODEL = {"name": "mlr", "l2": 0.1}


def test_a_model_is_the_users_own_or_named() -> None:
    own = eqx.nn.Linear(2, 2, key=jax.random.key(0))
    assert own_or_named(own) == (own, {"name": "own"})
    assert own_or_named("mlr") == (None, {"name": "mlr"})
    assert own_or_named(MODEL) == (None, MODEL)


def test_one_cell_named_after_the_data_with_all_settings() -> None:
    methods = ["local", {"name": "pfedme", "rate": 0.5}]
    experiment = comparison_of(
        "mine", {"name": "synthetic"}, MODEL, methods, seeds=3, first_seed=2, title="A title", rounds=7, cohort=5
    )
    assert (experiment.name, experiment.title) == ("compare-mine", "A title")
    assert (experiment.seeds, experiment.first_seed) == (3, 2)
    (cell,) = experiment.cells
    assert (cell.id, cell.rounds, cell.cohort, cell.select) == ("mine", 7, 5, "last")
    assert [method.name for method in cell.methods] == ["local", "pfedme"]
    assert cell.methods[1].spec == {"name": "pfedme", "rate": 0.5}
    assert dict(cell.data) == {"name": "synthetic"}


def test_validation_data_are_scored_only_where_they_choose() -> None:
    def splits(select: str) -> list[str]:
        return list(
            comparison_of("d", {"name": "synthetic"}, MODEL, ["local"], select=select, rounds=2).cells[0].splits
        )

    assert splits("last") == ["train", "test"]
    assert splits("best-validation") == ["train", "validation", "test"]


def measured_cell(metric="", published=()):
    return stored([{"name": "fedavg", "published": published}], cells=[{"metric": metric}]).cells[0]


def names(*arguments, task="classification"):
    return [metric.name for metric in metrics_of(measured_cell(*arguments), task)]


def test_the_first_named_is_compared_and_published_ones_are_measured():
    published = [{"model": "global", "value": 1.0, "metric": "ece"}, {"model": "global", "value": 1.0}]
    assert names() == ["accuracy", "macro-f1"]
    assert names("auroc, brier", published) == ["auroc", "brier", "accuracy", "macro-f1", "ece"]
    assert names("r2", task="regression") == ["r2", "mse"]


def test_what_is_refused():
    data = classification().data
    own = {name: replace(data.split(name), outputs=np.full(5, 3)) for name in ("train", "validation", "test")}
    check_metrics(measured_cell("auroc"), data)
    check_metrics(measured_cell("accuracy,auroc"), replace(data, **own))
    with pytest.raises(ConfigError, match="'auroc' compares classes that all clients share, but each client numbers"):
        check_metrics(measured_cell("auroc"), replace(data, **own))
    with pytest.raises(ConfigError, match="metric 'r2' is for regression, but the data are for classification"):
        check_metrics(measured_cell("r2"), data)
    with pytest.raises(ConfigError, match="metric 'mae' is for regression"):
        check_metrics(measured_cell("", [{"model": "global", "value": 1.0, "metric": "mae"}]), data)
    with pytest.raises(ConfigError, match=r"^toy: unknown metric 'aurok'; did you mean 'auroc'"):
        measured_cell("aurok")


def test_of_several_cells_the_wrong_one_is_named():
    cells = [*cell(), {**cell()[0], "id": "b", "methods": [{"name": "local"}, {"name": "local", "rat": 1}]}]
    refused("here: cell 'b', method 'local': unknown key of method local 'rat'; did you mean 'rate'", cells=cells)
    refused("here: cell 'b': rounds = 0 must be", cells=[*cell(), {**cell()[0], "id": "b", "rounds": 0}])
    refused("here: cell 'b', method 'local': rate = inf", cells=[
        *cell(), {**cell()[0], "id": "b", "methods": [{"name": "local", "rate": math.inf}]}
    ])  # fmt: skip
