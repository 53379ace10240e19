"""A hub's rounds: who is missing changes nothing but who takes part, and a hub that dies goes on where it was."""

import numpy as np
import pandas as pd
import pytest

from idiolect.algorithms.boosted_intercept import BoostedIntercept
from idiolect.data import from_table
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.rounds import PAUSE
from idiolect.deploy.hub.run import progress, run_hub
from idiolect.deploy.messages import Message, read_message
from idiolect.deploy.transport import InProcess, QuorumError, Replies
from idiolect.runtime.evaluate import Evaluator
from idiolect.study.spec.assemble import problem_of
from idiolect.study.store.store import Store
from tests.deploy.federation import (
    Silent,
    data_of,
    experiment_of,
    hub_of,
    kept_file,
    participation,
    scores_of,
    sites_of,
)
from tests.tiers import second

DATA = data_of()
ONE = experiment_of(["scaffold"], rounds=3, eval_every=1)
RUN = "t/scaffold/seed0"


def states(folder):
    """All that is kept at the hub and at the sites after a run: bytes of vectors by their place."""
    kept = {"hub": read_message(folder / "hub" / "checkpoints" / "t__scaffold__seed0.hub").vectors}
    for name in DATA.clients:
        kept[name] = read_message(kept_file(folder / name, "t/scaffold/seed0")).vectors
    return {(who, leaf): v.tobytes() for who, of in kept.items() for leaf, v in of.items() if "answer" not in leaf}


def undisturbed(folder, silent=None, **settings):
    transport = Silent(InProcess(sites_of(folder, DATA)), silent or {})
    run_hub(hub_of(folder / "hub", ONE, DATA, **settings), transport)
    return states(folder), scores_of(folder / "hub", RUN)


def same_scores(one, other):
    assert one.keys() == other.keys()
    for key, scores in one.items():
        np.testing.assert_array_equal(scores.loss, other[key].loss)


class Killed(BaseException):
    """Stands for kill -9 of the hub."""


class Deadly:
    """A transport during whose nth call the hub dies: before its messages are sent, or with all answers lost."""

    def __init__(self, inner, at, sent):
        self.inner, self.at, self.sent, self.calls = inner, at, sent, 0

    @property
    def sites(self):
        return self.inner.sites

    def call(self, round, messages, *, deadline):
        self.calls += 1
        if self.calls == self.at and not self.sent:
            raise Killed
        got = self.inner.call(round, messages, deadline=deadline)
        if self.calls == self.at:
            raise Killed
        return got


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.second
@pytest.mark.parametrize("sent", [True, False])
def test_a_hub_that_dies_in_any_call_goes_on_to_the_same_bits(expected, sent, tmp_path):
    calls = 3 + 4 + 3 + 1  # hello, join, begin; four evaluations; three rounds; the end
    for at in range(1, calls + 1):
        folder = tmp_path / str(at)
        hub, sites = hub_of(folder / "hub", ONE, DATA), sites_of(folder, DATA)
        with pytest.raises(Killed):
            run_hub(hub, Deadly(InProcess(sites), at, sent))
        run_hub(hub, InProcess(sites_of(folder, DATA)))  # the sites' workers are new, too
        assert states(folder) == expected[0], at
        same_scores(scores_of(hub, RUN), expected[1])
        assert progress(hub) == (3, 3)
    last = Deadly(InProcess(sites_of(tmp_path / "last", DATA)), 0, sent)
    run_hub(hub_of(tmp_path / "last" / "hub", ONE, DATA), last)
    assert last.calls == calls  # all have been tried


@pytest.mark.second
def test_a_hub_that_dies_after_each_write_goes_on_to_the_same_bits(expected, tmp_path, monkeypatch):
    from idiolect.deploy.hub import journal

    write = journal.write_message
    for at in range(1, 5):
        folder, count = tmp_path / str(at), iter(range(1, 100))

        def dying(path, message, at=at, count=count):
            write(path, message)
            if next(count) == at:
                raise Killed

        hub = hub_of(folder / "hub", ONE, DATA)
        monkeypatch.setattr(journal, "write_message", dying)
        with pytest.raises(Killed):
            run_hub(hub, InProcess(sites_of(folder, DATA)))
        monkeypatch.setattr(journal, "write_message", write)
        run_hub(hub, InProcess(sites_of(folder, DATA)))
        assert states(folder) == expected[0], at
        assert {line["round"] for line in participation(hub)} == {0, 1, 2}, at  # no round is without its line
        same_scores(scores_of(hub, RUN), expected[1])


def test_a_silent_site_keeps_its_private_state_and_is_back_in_the_next_round(tmp_path):
    silent = {(RUN, 1): ["site-2"]}
    undisturbed(tmp_path, silent)
    lines = participation(tmp_path / "hub")
    assert [sorted(line["answered"]) for line in lines] == [
        ["site-1", "site-2", "site-3"],
        ["site-1", "site-3"],
        ["site-1", "site-2", "site-3"],
    ]
    assert lines[1]["missing"] == {"site-2": "silent"}
    assert [(line["asked"], line["replies"]) for line in lines] == [(3, 3), (3, 2), (3, 3)]
    moved = Participation(tmp_path / "hub").traffic()[RUN]
    assert moved.of_a_client == (lines[0]["bytes_down"] / 3, lines[0]["bytes_up"] / 3)
    # mean_i c_i = c holds whoever took part: nothing of the dropped round is left at the site
    kept = read_message(tmp_path / "hub" / "checkpoints" / "t__scaffold__seed0.hub").vectors
    own = [read_message(kept_file(tmp_path / name, "t/scaffold/seed0")).vectors for name in DATA.clients]
    for leaf in ("linear/weight", "linear/bias"):
        mean = np.mean([vectors[f"private/{leaf}"] for vectors in own], axis=0)
        np.testing.assert_allclose(kept[f"control/{leaf}"], mean, atol=1e-6)


class Gone:
    """A transport to which a site is connected no more after this many calls."""

    def __init__(self, inner, site, calls):
        self.inner, self.site, self.calls = inner, site, calls

    @property
    def sites(self):
        return [site for site in self.inner.sites if site != self.site or self.calls > 0]

    def call(self, round, messages, *, deadline):
        self.calls -= 1
        return self.inner.call(round, messages, deadline=deadline)


def test_bytes_are_of_messages_that_were_sent(tmp_path):
    hub = hub_of(tmp_path / "hub", ONE, DATA)
    run_hub(hub, Gone(InProcess(sites_of(tmp_path, DATA)), "site-2", 4))  # hello, join, begin, an evaluation
    lines = participation(hub)
    assert lines[0]["missing"] == {"site-2": "not connected"}
    assert {(line["asked"], line["replies"]) for line in lines} == {(2, 2)}
    two_models = 2 * 4 * 2 * (3 + 1)  # SCAFFOLD's model and control: float32, two classes, three features and a bias
    assert {(line["bytes_down"], line["bytes_up"]) for line in lines} == {(2 * two_models, 2 * two_models)}


def test_without_quorum_the_round_is_called_again_and_then_told(tmp_path, monkeypatch):
    monkeypatch.setattr("idiolect.deploy.hub.rounds.PAUSE", 0.0)
    everyone = {(RUN, 1): DATA.clients[:2]}
    with pytest.raises(QuorumError, match=r"t/scaffold/seed0, round 2: 1 of the 3 sites needed.*site-1: silent"):
        undisturbed(tmp_path, everyone, quorum=3)
    run_hub(tmp_path / "hub", InProcess(sites_of(tmp_path, DATA)))
    with Store(tmp_path / "hub", create=False) as store:
        assert store.run(RUN).status == "done"


class Counted(Silent):
    """A transport that notes the rounds that are called; the sites that are silent answer after some calls."""

    def __init__(self, inner, silent, calls):
        super().__init__(inner, silent)
        self.called, self.left = [], calls

    def call(self, round, messages, *, deadline):
        if any(message.header["task"] == "round" for message in messages.values()):
            self.called.append(round)
            self.silent = self.silent if len(self.called) <= self.left else {}
        return super().call(round, messages, deadline=deadline)


@pytest.mark.parametrize(
    ("silent", "calls", "settings", "called"),
    [
        second(1, 9, {"quorum": 2}, [0, 1]),  # as many as are needed
        (2, 1, {"quorum": 2}, [0, 0, 1]),
        second(2, 9, {"quorum": 2, "tries": 1}, [0]),
        (2, 9, {"quorum": 2, "tries": 2}, [0, 0]),
    ],
)
def test_a_round_without_quorum_is_called_so_often_with_a_pause_between(
    silent, calls, settings, called, tmp_path, monkeypatch
):
    pauses = []
    monkeypatch.setattr("idiolect.deploy.hub.rounds.time.sleep", pauses.append)
    transport = Counted(InProcess(sites_of(tmp_path, DATA)), {("t/fedavg/seed0", 0): DATA.clients[:silent]}, calls)
    hub = hub_of(tmp_path / "hub", experiment_of(["fedavg"], rounds=2, eval_every=2), DATA, **settings)
    if called[-1] == 1:
        run_hub(hub, transport)
    else:
        with pytest.raises(QuorumError, match="round 1: 1 of the 2 sites needed"):
            run_hub(hub, transport)
    assert transport.called == called
    assert pauses.count(PAUSE) == len(called) - len({*called})


def test_by_default_half_of_a_cohort_rounded_up_must_answer(tmp_path, monkeypatch):
    """Of three sites two: with one silent site the round counts, with two it does not."""
    monkeypatch.setattr("idiolect.deploy.hub.rounds.PAUSE", 0.0)
    undisturbed(tmp_path / "one", {(RUN, 1): DATA.clients[:1]})
    with pytest.raises(QuorumError, match=r"t/scaffold/seed0, round 2: 1 of the 2 sites needed"):
        undisturbed(tmp_path / "two", {(RUN, 1): DATA.clients[:2]})


class Meddling:
    """A transport that changes what one site answers."""

    def __init__(self, inner, site, change):
        self.inner, self.site, self.change = inner, site, change

    @property
    def sites(self):
        return self.inner.sites

    def call(self, round, messages, *, deadline):
        got = self.inner.call(round, messages, deadline=deadline)
        task = next(iter(messages.values())).header["task"]
        if self.site in got.replies:
            got.replies[self.site] = self.change(task, got.replies[self.site])
        return Replies(got.replies, got.missing)


def spoilt(change):
    """A change of the vectors of a round's answer."""
    return lambda task, answer: Message(answer.header, change(dict(answer.vectors))) if task == "round" else answer


NAME = "params/linear/weight"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (spoilt(lambda v: {**v, NAME: v[NAME] * np.nan}), f"site 'site-2': '{NAME}' holds NaN or infinity"),
        second(
            spoilt(lambda v: {**v, NAME: v[NAME][:1]}),
            f"site 'site-2': '{NAME}' has shape (1, 3), expected is (2, 3)",
        ),
        second(
            spoilt(lambda v: {**v, NAME: np.tile(v[NAME], (100, 1))}), f"site 'site-2': '{NAME}' has shape (200, 3)"
        ),
        second(spoilt(lambda v: {**v, "more": np.zeros(2)}), "site 'site-2': 'more' is not expected"),
        (spoilt(lambda v: {}), "site 'site-2': 'control/linear/bias' is missing"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_others_go_on(change, told, tmp_path):
    experiment = experiment_of(["scaffold"], rounds=2, eval_every=2)
    hub = hub_of(tmp_path / "hub", experiment, DATA)
    run_hub(hub, Meddling(InProcess(sites_of(tmp_path, DATA)), "site-2", change))
    lines = participation(hub)
    assert [sorted(line["answered"]) for line in lines] == [["site-1", "site-3"]] * 2
    assert all(line["missing"]["site-2"].startswith(told) for line in lines)


def test_a_refused_answer_does_not_count_for_the_quorum(tmp_path, monkeypatch):
    monkeypatch.setattr("idiolect.deploy.hub.rounds.PAUSE", 0.0)
    refused = Meddling(InProcess(sites_of(tmp_path, DATA)), "site-2", spoilt(lambda v: {}))
    with pytest.raises(QuorumError, match=r"round 1: 2 of the 3 sites needed have answered \(site-2: site 'site-2'"):
        run_hub(hub_of(tmp_path / "hub", ONE, DATA, quorum=3), refused)


def test_a_site_with_another_version_is_not_called(tmp_path):
    def older(task, answer):
        return Message({**answer.header, "version": "0.0.1"}) if task == "hello" else answer

    hub = hub_of(tmp_path / "hub", ONE, DATA)
    with pytest.raises(QuorumError, match=r"not all .*\(site-3: it has idiolect 0.0.1 .*take them out"):
        run_hub(hub, Meddling(InProcess(sites_of(tmp_path, DATA)), "site-3", older))


@pytest.mark.parametrize(
    "said",
    [
        {"global": {"test": {"count": 4, "loss": float("nan"), "values": {}}}},
        second({"global": {"test": {"count": 4, "loss": 1.0}}}),
        {"global": {"test": {"count": 4, "loss": 1.0, "values": [3]}}},
        second({"global": ["test"]}),
        second("good"),
    ],
)
def test_scores_that_cannot_be_read_count_as_none_and_the_others_count(said, tmp_path):
    def wrong(task, answer):
        return answer if task != "evaluate" else Message({"scores": said})

    hub = hub_of(tmp_path / "hub", experiment_of(["fedavg"], rounds=1), DATA)
    run_hub(hub, Meddling(InProcess(sites_of(tmp_path, DATA)), "site-2", wrong))
    scores = scores_of(hub, "t/fedavg/seed0")[1, "global", "test"]
    assert scores.count.tolist() == [4, 0, 4]
    assert np.isnan(scores.loss).tolist() == [False, True, False]


OFTEN = "silent too often; called again in every tenth round"


def test_a_site_that_is_silent_too_often_is_called_again_in_the_tenth_round(tmp_path):
    transport = Silent(InProcess(sites_of(tmp_path, DATA)), {("t/fedavg/seed0", 1): ["site-2"]})
    run_hub(
        hub_of(tmp_path / "hub", experiment_of(["fedavg"], rounds=12, eval_every=12), DATA, patience=1), transport
    )
    lines = participation(tmp_path / "hub")
    assert [line["missing"] for line in lines] == [{}, {"site-2": "silent"}, *[{"site-2": OFTEN}] * 8, {}, {}]
    assert [line["asked"] for line in lines] == [3, 3, *[2] * 8, 3, 3]


def test_only_an_answer_that_can_be_used_ends_a_silence(tmp_path):
    """Both are silent in two rounds; what site-3 answers between them is refused."""
    answers = []

    def second(task, answer):
        answers.append(task)
        return Message({}, {}) if task == "round" and answers.count("round") == 2 else answer

    silent = {("t/fedavg/seed0", round): ["site-2", "site-3"] for round in (1, 3)}
    transport = Meddling(Silent(InProcess(sites_of(tmp_path, DATA)), silent), "site-3", second)
    experiment = experiment_of(["fedavg"], rounds=5, eval_every=5)
    run_hub(hub_of(tmp_path / "hub", experiment, DATA, patience=2, quorum=1), transport)
    lines = participation(tmp_path / "hub")
    assert lines[2]["missing"].keys() == {"site-3"}
    assert lines[4]["missing"] == {"site-3": OFTEN}
    assert lines[4]["answered"] == ["site-1", "site-2"]


@pytest.mark.second
def test_sites_divide_a_column_of_categories_as_the_simulation_does(tmp_path):
    """The hub knows the categories by the study's schema, the sites by theirs; no column of numbers says anything."""
    rng = np.random.default_rng(0)
    word, effect = rng.integers(0, 6, 360), rng.permutation([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    table = pd.DataFrame({"client": np.repeat([f"site-{k}" for k in (1, 2, 3)], 120), "x": rng.normal(size=360)})
    table["word"] = [f"w{k}" for k in word]
    table["label"] = np.where(effect[word] + rng.logistic(size=360) > 0, "yes", "no")
    data = from_table(table, validation=0.2)
    assert [count for _, count in data.categories] == [6]
    settings = {"trees": 1, "leaves": 3, "client_rows": 20, "linear": False, "client_splits": False}
    rounds = 11
    method = {"name": "boosted-intercept", **settings}
    hub = hub_of(tmp_path / "hub", experiment_of([method], rounds=rounds, eval_every=rounds), data)
    run_hub(hub, InProcess(sites_of(tmp_path, data)))
    simulation = problem_of(data, {"name": "mlr"}).simulation(BoostedIntercept(**settings))
    state = simulation.advance(simulation.init(0), rounds)
    assert int(state.shared.model.done) == 1
    assert (np.asarray(state.shared.model.grown.members) != 0).any()
    (expected,) = Evaluator(simulation)(state, ("personal",), ("test",))
    got = scores_of(hub, "t/boosted-intercept/seed0")[rounds, "personal", "test"]
    np.testing.assert_allclose(got.loss, expected.loss, rtol=1e-4)
