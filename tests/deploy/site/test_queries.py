"""What a site refuses of a hub's queries, and what bounds the questions."""

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.deploy.headers import Request
from idiolect.deploy.hub.query import new_description, new_score
from idiolect.deploy.messages import Message
from idiolect.deploy.site.approvals import approve, revoke
from idiolect.deploy.site.floors import Floors
from tests.deploy.queries import federation, model_of, site_of, table_of

TABLE = table_of(rows=120)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    return federation(tmp_path_factory.mktemp("hub"), TABLE)[0]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [model_of(folder / f"m{seed}.safetensors", TABLE, seed) for seed in range(3)]


@pytest.fixture
def site(tmp_path):
    return site_of(tmp_path / "south", "south", TABLE[TABLE.client == "south"])


def ask(site, query, task="score", content=None, *, call=1, **more):
    request = Request.model_validate(
        {"task": task, "study": query.id, "approved": query.digest, "job": 1, "call": call, **more}
    )
    vectors = {} if content is None else {"model": np.frombuffer(content, np.uint8)}
    return site.answer(request.message(vectors), "server", None)


def score_of(hub, path, **settings):
    return new_score(hub, path, **{"metric": "accuracy", **settings}), path.read_bytes()


def test_an_approved_model_is_scored(site, hub, models):
    query, content = score_of(hub, models[0])
    approve(site.folder, "south", query)
    answer = ask(site, query, content=content)
    expected = ((TABLE.client == "south") & (TABLE.split == "test")).sum()
    assert answer.header["scores"]["model"]["test"]["count"] == expected, answer.error


def test_another_model_than_the_approved_is_refused(site, hub, models):
    query, _ = score_of(hub, models[0])
    approve(site.folder, "south", query)
    error = ask(site, query, content=models[1].read_bytes()).error
    assert error.startswith(
        f"site 'south' refuses: study {query.id}: model.sha256: approved {query.model.sha256[:12]}"
    )
    assert "asked" in ask(site, query).error
    assert not (site.folder / "models").exists()


def test_a_query_that_has_changed_since_its_approval_is_refused(site, hub, models):
    query, content = score_of(hub, models[0])
    approve(site.folder, "south", query)
    other = query.model_copy(update={"splits": ("train",)})
    assert "the study has changed" in ask(site, other, content=content).error
    revoke(site.folder, query.id)
    assert "revoked" in ask(site, query, content=content).error


def test_one_purpose_is_not_another(site, hub, models):
    query, content = score_of(hub, models[0])
    approve(site.folder, "south", query)
    assert "purpose: approved score, asked describe" in ask(site, query, "describe").error
    assert "purpose: approved score, asked describe" in ask(site, query, "histograms").error
    description = new_description(hub)
    approve(site.folder, "south", description)
    assert "purpose: approved describe, asked score" in ask(site, description, content=content).error
    assert "purpose: approved score, asked train" in ask(site, query, "summary").error
    terms = {"run": "c/fedavg/seed0", "method": {"name": "fedavg"}, "model": {"name": "mlr"}, "kind": {}, "seed": 0}
    terms |= {"rounds": 1, "study": query.id, "approved": query.digest}
    head = {"task": "join", "run": "c/fedavg/seed0", "terms": terms, "job": 1, "call": 9}
    assert "purpose: approved score, asked train" in site.answer(Message(head), "server", None).error


def test_what_the_site_does_not_allow_is_refused(tmp_path, hub, models):
    closed = site_of(tmp_path / "s", "south", TABLE[TABLE.client == "south"], evaluation=False, summaries=False)
    query, content = score_of(hub, models[0])
    description = new_description(hub)
    approve(closed.folder, "south", query)
    approve(closed.folder, "south", description)
    assert "allow.evaluation" in ask(closed, query, content=content).error
    assert "allow.summaries" in ask(closed, description, "describe").error
    assert "allow.summaries" in ask(closed, description, "histograms").error


def test_a_split_of_few_rows_stays_at_the_site(tmp_path, hub, models):
    rows = TABLE[TABLE.client == "south"]
    few = rows[(rows.split != "test") | (np.cumsum(rows.split == "test") <= 4)]
    site = site_of(tmp_path / "s", "south", few)
    query, content = score_of(hub, models[0], splits=("test", "train"))
    approve(site.folder, "south", query)
    answer = ask(site, query, content=content)
    assert [*answer.header["scores"]["model"]] == ["train"]
    assert "the test split has 4 rows" in answer.header["withheld"]["test"]
    only = score_of(hub, models[1])[0]
    approve(site.folder, "south", only)
    assert "floors.count = 5" in ask(site, only, content=models[1].read_bytes()).error


def test_a_model_is_approved_once(site, hub, models):
    query, _ = score_of(hub, models[0])
    again, _ = score_of(hub, models[0], splits=("train",))
    approve(site.folder, "south", query)
    with pytest.raises(ConfigError, match=f"is approved already, in {query.id}"):
        approve(site.folder, "south", again)
    approve(site.folder, "south", query)  # the same query again
    revoke(site.folder, query.id)
    approve(site.folder, "south", again)


def test_the_number_of_different_models_is_bounded_over_all_queries(tmp_path, hub, models):
    site = site_of(tmp_path / "s", "south", TABLE[TABLE.client == "south"], Floors(models=2))
    for place, path in enumerate(models):
        query, content = score_of(hub, path)
        approve(site.folder, "south", query)
        error = ask(site, query, content=content, call=place).error
        assert error == "" if place < 2 else "floors.models = 2, but this is model 3" in error
    site = site_of(tmp_path / "s", "south", TABLE[TABLE.client == "south"], Floors(models=2))  # also after a restart
    assert "floors.models = 2" in ask(site, query, content=content, call=9).error


def test_the_number_of_answers_is_bounded(site, hub, models):
    query, content = score_of(hub, models[0])
    approve(site.folder, "south", query)
    answers = [ask(site, query, content=content, call=call) for call in range(4)]
    assert [bool(answer.error) for answer in answers] == [False, False, False, True]
    assert "answers: approved 3, asked answer 4" in answers[3].error
    assert answers[0].header == answers[2].header


def test_a_query_beyond_the_floors_is_refused(site, hub, models):
    query, content = score_of(hub, models[0], sites=["south", "west"])
    approve(site.folder, "south", query)
    assert "floors.sites = 3, but the query is for 2 sites" in ask(site, query, content=content).error
    many = score_of(hub, models[1])[0].model_copy(update={"answers": 9})
    approve(site.folder, "south", many)
    assert "floors.answers = 3" in ask(site, many, content=models[1].read_bytes()).error


def test_weights_beyond_the_largest_value_are_refused(tmp_path, hub, models):
    site = site_of(tmp_path / "s", "south", TABLE[TABLE.client == "south"], Floors(largest_value=0.01))
    query, content = score_of(hub, models[0])
    approve(site.folder, "south", query)
    assert "floors.largest_value = 0.01" in ask(site, query, content=content).error


def without_a_row(tmp_path, site, split):
    """The same site after one row has left its table."""
    rows = TABLE[TABLE.client == "south"]
    gone = rows.index[rows.split == split][0]
    changed = site_of(tmp_path / "south", "south", rows.drop(index=gone))
    assert changed.folder == site.folder
    return changed


def test_two_scores_around_a_change_would_give_the_row_that_left(tmp_path, site, hub, models):
    """The difference of two answers is a single row: the second answer is refused, and no digest of it is sent."""
    query, content = score_of(hub, models[0])
    approve(site.folder, "south", query)
    assert not ask(site, query, content=content).error
    changed = without_a_row(tmp_path, site, "test")
    error = ask(changed, query, content=content, call=2).error
    assert "test: approved the first answer, asked another one" in error
    assert "--changed-rows" in error
    approve(site.folder, "south", query)
    assert ask(changed, query, content=content, call=3).error == error  # approving it again is not enough
    renamed = query.model_copy(update={"id": "other-00000000"})
    revoke(site.folder, query.id)
    approve(site.folder, "south", renamed)
    assert "another one" in ask(changed, renamed, content=content).error  # nor is another query with the model
    approve(site.folder, "south", renamed, changed_rows=True)
    assert not ask(changed, renamed, content=content, call=2).error


def test_two_descriptions_around_a_change_would_give_the_row_that_left(tmp_path, site, hub):
    query = new_description(hub)
    approve(site.folder, "south", query)
    assert not ask(site, query, "describe").error
    assert not ask(site, query, "describe", call=2).error
    changed = without_a_row(tmp_path, site, "train")
    error = ask(changed, query, "describe", call=3).error
    assert "columns: approved the first answer" in error
    assert "site approve" in error


def test_two_descriptions_with_other_settings_would_give_withheld_counts(site, hub):
    """As numbers, a column has cells; as categories, counts by value: together they give the values of few rows."""
    query = new_description(hub)
    other = query.model_copy(update={"id": "other-00000000", "table": {"categorical": ["count"]}})
    for one in (query, other):
        approve(site.folder, "south", one)
    assert not ask(site, query, "describe").error
    assert "another one" in ask(site, other, "describe").error


def test_two_grids_of_one_column_would_give_the_rows_between_their_edges(site, hub):
    query = new_description(hub)
    approve(site.folder, "south", query)
    grid = {"reading": "number", "start": 0.0, "width": 4.0}
    first = ask(site, query, "histograms", grids={"age": grid})
    assert first.header["cells"]["age"], first.error
    for change in ({"start": 0.5}, {"width": 2.0}, {"reading": "date"}):
        error = ask(site, query, "histograms", call=2, grids={"age": {**grid, **change}}).error
        assert "grid of age: approved the first answer" in error
    assert ask(site, query, "histograms", call=2, grids={"age": grid}).header == first.header


def test_a_column_that_is_counted_by_value_has_no_histogram(site, hub):
    query = new_description(hub)
    approve(site.folder, "south", query)
    names = ("smokes", "sex", "label", "no such column")
    grids = {name: {"reading": "number", "start": -1.0, "width": 0.5} for name in names}
    assert ask(site, query, "histograms", grids=grids).header["cells"] == {}


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan"), float("inf"), "1"])
def test_a_grid_that_is_none_is_refused(site, hub, width):
    query = new_description(hub)
    approve(site.folder, "south", query)
    head = {"task": "histograms", "study": query.id, "approved": query.digest, "job": 1, "call": 1}
    head |= {"grids": {"age": {"reading": "number", "start": 0.0, "width": width}}}
    assert "grids.age.width" in site.answer(Message(head), "server", None).error


def test_a_site_with_few_rows_describes_nothing(tmp_path, hub):
    rows = TABLE[(TABLE.client == "south") & (TABLE.split == "train")][:9]
    site = site_of(tmp_path / "s", "south", rows)
    query = new_description(hub)
    approve(site.folder, "south", query)
    assert "floors.rows = 10, but the site has 9 training rows" in ask(site, query, "describe").error
    assert "floors.rows = 10" in ask(site, query, "histograms", grids={}).error
