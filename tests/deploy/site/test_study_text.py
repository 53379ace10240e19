"""A study in plain words: what an administrator must know stands in it, and nothing steers the terminal."""

import pytest

from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.plan import study_of
from idiolect.deploy.kind import Kind
from idiolect.deploy.site.config import Allowed, SiteConfig
from idiolect.deploy.site.study_text import study_lines
from idiolect.deploy.study import Study
from tests.deploy.federation import data_of, experiment_of

DATA = data_of()


def text_of(methods, allowed=None, **settings):
    values = {"kind": Kind.of(DATA).to_dict(), "sites": DATA.clients, "study": "t-00000000", **settings}
    study = study_of(HubConfig(experiment=experiment_of(methods, rounds=1200).model_dump(mode="json"), **values))
    return "\n".join(study_lines(study, SiteConfig(name="site-1", data={}, allow=Allowed(**(allowed or {}))))), study


def test_a_study_in_plain_words():
    text, study = text_of(["ditto", {"name": "dfedu", "graph": "ring", "batch_size": 0}])
    for told in (
        f"digest: {study.digest}",
        "Sites: this one (site-1), and site-2, site-3.",
        "A round is asked of at least 3 sites.",
        "Rounds: at most 1,200 per run, and at most 601 evaluations.",
        "16 rounds and 16 evaluations may be asked again",
        "t/ditto: method ditto, model mlr",
        "a training step: 20 rows (batch_size = 20, local_steps = 20, epochs = 0)",
        "prox_weight = 1.0",
        "sent per round to the hub: linear/weight float32[2, 3], linear/bias float32[2]; 32 bytes",
        "a training step: all rows (batch_size = 0",
        "sent per round to each neighbour (site-2, site-3), unchanged: linear/weight",
        "evaluations: 601, sums of accuracy,macro-f1 on train, test rows",
        "Data: classification, 3 numbers per row, classes 0, 1. No sums of columns are sent.",
    ):
        assert told in text


def test_a_step_of_one_row_is_named():
    assert "a training step: 1 row (batch_size = 1" in text_of([{"name": "fedavg", "batch_size": 1}])[0]


def test_what_the_site_itself_does_not_allow_is_named():
    text, _ = text_of(
        ["fedavg"], {"methods": ("ditto",), "evaluation": False}, kind=None, agree=True, table={"label": "y"}
    )
    assert "site.toml does not allow the method fedavg: its calls are refused" in text
    assert "site.toml sends none (allow.evaluation)" in text
    assert "site.toml does not allow sums of columns (allow.summaries)" in text
    assert 'Tables are read with: label = "y".' in text
    assert "bytes depend on the schema" in text


@pytest.mark.parametrize("name", ["\x1b[2Jsite", "a\u202eb", "a\nApproved: yes"])
def test_names_of_the_hub_do_not_steer_the_terminal(name):
    _, study = text_of(["fedavg"])
    values = study.model_dump()
    other = Study.model_validate({**values, "sites": (*values["sites"], name), "table": {name: name}, "kind": None})
    lines = study_lines(other, SiteConfig(name="site-1", data={}))
    assert all(line.isprintable() for line in lines)
