"""A run that a liar makes diverge goes on from the last good checkpoint, to the bits of a replay without the liar."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from idiolect.deploy.hub.run import progress, run_hub
from idiolect.deploy.messages import Message, Vector, read_message
from idiolect.deploy.transport import InProcess, Replies
from idiolect.study.store.store import Store
from tests.deploy.federation import (
    Silent,
    data_of,
    experiment_of,
    hub_of,
    kept_file,
    participation,
    scores_of,
    site_of,
    sites_of,
)
from tests.deploy.hub.liars import Liar, Lie, lie

DATA = data_of(sites=4)
LOOSE = {"scale": None}
"""A guard that lets any finite message pass, so that only the rollback helps."""
ONCE = 3


def poison(value: float) -> Lie:
    """Once, numbers of this size with both signs."""

    def change(round: int, sent: Vector, received: Vector) -> Vector:
        signs = np.where(np.arange(sent.size) % 2, 1, -1).reshape(sent.shape)
        return (signs * value).astype(sent.dtype)

    return lie(change, once=True)


def states(folder: Path, run: str) -> dict[tuple[str, str], bytes]:
    """The shared state and all private ones."""
    name, found = run.replace("/", "__"), dict[tuple[str, str], bytes]()
    files = {"hub": folder / f"hub/checkpoints/{name}.hub"}
    files |= {site: kept_file(folder / site, run) for site in DATA.clients}
    for place, file in files.items():
        message = read_message(file)
        assert message is not None
        found |= {(place, leaf): v.tobytes() for leaf, v in message.vectors.items() if "answer" not in leaf}
    return found


@pytest.mark.second
@pytest.mark.parametrize(
    ("method", "value", "to", "why"),
    [
        ("scaffold", 3e38, 2, "the shared state of scaffold holds"),
        ("ditto", 3e38, 3, "the losses of most sites exploded before the evaluation of round 6"),
        ("ditto", 1e6, 2, "the losses of most sites exploded before the evaluation of round 4"),
    ],
)
def test_a_run_that_was_rolled_back_equals_a_replay_in_every_bit(
    method: str, value: float, to: int, why: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """Poison in round 4: the run returns to an earlier round, and the sites to their private states of then."""
    if method == "ditto":  # as if the check of the shared state found nothing
        monkeypatch.setattr("idiolect.deploy.hub.server.LARGEST", np.inf)
    experiment, run = experiment_of([method], rounds=7, eval_every=to), f"t/{method}/seed0"
    hub = hub_of(tmp_path / "a" / "hub", experiment, DATA, guard=LOOSE)
    run_hub(hub, Liar(InProcess(sites_of(tmp_path / "a", DATA)), poison(value)))
    (line,) = [line for line in participation(hub) if "rollback" in line]
    assert (line["rollback"], line["without"], line["number"]) == (to, ["site-4"], 1)
    assert why in line["why"]
    lines = participation(hub)
    assert f"was left out by a rollback to round {to}" in lines[-1]["missing"]["site-4"]
    assert progress(hub) == (7, 7)
    with Store(hub, create=False) as store:
        assert store.run(run).status == "done"

    silent = Silent(InProcess(sites_of(tmp_path / "b", DATA)), {(run, round): ["site-4"] for round in range(to, 7)})
    run_hub(hub_of(tmp_path / "b" / "hub", experiment, DATA, patience=99), silent)  # evaluated like the others
    assert states(tmp_path / "a", run) == states(tmp_path / "b", run)
    one, other = scores_of(hub, run), scores_of(tmp_path / "b" / "hub", run)
    assert one.keys() == other.keys()
    for key, scores in one.items():
        np.testing.assert_array_equal(scores.loss, other[key].loss)


class Killed(BaseException):
    """Stands for kill -9 of the hub."""


@pytest.mark.second
def test_a_hub_that_dies_in_a_rollback_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: Any) -> None:
    from idiolect.deploy.hub.rounds import HubRun

    experiment, run = experiment_of(["scaffold"], rounds=5, eval_every=2), "t/scaffold/seed0"
    found = []
    for place in ("", "participation", "_keep", "rewound"):
        folder = tmp_path / (place or "whole")
        hub, rolled = hub_of(folder / "hub", experiment, DATA, guard=LOOSE), HubRun._roll_back

        def dying(self: Any, error: Any, place: str = place, rolled: Any = rolled) -> Any:
            def die(*_: Any) -> None:
                raise Killed

            if place == "participation":
                write = self.participation.write
                self.participation.write = lambda line: (write(line), die())
            elif place:
                setattr(self, place, die)
            return rolled(self, error)

        liar = Liar(InProcess(sites_of(folder, DATA)), poison(3e38))
        if place:
            monkeypatch.setattr(HubRun, "_roll_back", dying)
            with pytest.raises(Killed):
                run_hub(hub, liar)
            monkeypatch.setattr(HubRun, "_roll_back", rolled)
        run_hub(hub, Liar(InProcess(sites_of(folder, DATA)), poison(3e38)))
        found.append(states(folder, run))
    assert all(other == found[0] for other in found)


def test_a_run_that_diverges_by_itself_ends_and_nobody_is_suspected(tmp_path: Path) -> None:
    experiment = experiment_of([{"name": "fedavg", "rate": 1e30}], rounds=4, eval_every=2)
    hub = hub_of(tmp_path / "hub", experiment, DATA)
    run_hub(hub, InProcess(sites_of(tmp_path, DATA)))
    assert not any("rollback" in line for line in participation(hub))
    with Store(hub, create=False) as store:
        assert store.run("t/fedavg/seed0").status == "diverged"


def test_without_rollbacks_left_the_run_ends_as_diverged(tmp_path: Path) -> None:
    experiment = experiment_of(["fedavg"], rounds=6, eval_every=2)
    hub = hub_of(tmp_path / "hub", experiment, DATA, guard={**LOOSE, "rollbacks": 0})
    run_hub(hub, Liar(InProcess(sites_of(tmp_path, DATA)), poison(3e38)))
    with Store(hub, create=False) as store:
        assert store.run("t/fedavg/seed0").status == "diverged"
    assert not any("rollback" in line for line in participation(hub))


def test_training_that_diverges_at_most_sites_is_rolled_back(tmp_path: Path) -> None:
    """The sites' own reports: in round 5, after the poison of round 4, all say that training diverged."""

    class Diverging(Liar):
        def call(self, round: int, messages: Any, *, deadline: float) -> Replies:
            got = super().call(round, messages, deadline=deadline)
            if round == 4 and "site-4" in messages and messages["site-4"].header["task"] == "round":
                return Replies({}, dict.fromkeys(got.replies, "fedavg diverged (NaN or infinity) in round 5"))
            return got

    hub = hub_of(tmp_path / "hub", experiment_of(["fedavg"], rounds=6, eval_every=3), DATA, guard=LOOSE)
    run_hub(hub, Diverging(InProcess(sites_of(tmp_path, DATA)), poison(100.0)))
    (line,) = [line for line in participation(hub) if "rollback" in line]
    assert (line["rollback"], line["without"]) == (3, ["site-4"])
    assert "training diverged at 4 of 4 sites in round 5 (site-1, site-2, site-3, site-4)" in line["why"]


def test_one_site_that_says_it_diverged_is_only_missing(tmp_path: Path) -> None:
    def says(task: str, round: int, honest: Message, received: Any) -> Message:
        return Message({"error": "x diverged (NaN or infinity) in round 1"}) if task == "round" else honest

    hub = hub_of(tmp_path / "hub", experiment_of(["fedavg"], rounds=2), DATA)
    site = site_of(tmp_path / "site-4", DATA, "site-4")
    honest = site.answer
    site.answer = lambda message, caller, peer: says(  # type: ignore[method-assign]
        str(message.header["task"]), 0, honest(message, caller, peer), {}
    )
    run_hub(hub, InProcess({**sites_of(tmp_path, DATA), "site-4": site}))
    lines = participation(hub)
    assert [line["answered"] for line in lines] == [["site-1", "site-2", "site-3"]] * 2
