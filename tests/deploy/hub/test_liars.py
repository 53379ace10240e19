"""One of four sites lies, as in `liars`: what the hub refuses, whom it names, and what it goes on with."""

from pathlib import Path

import numpy as np
import pytest

from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message, Vectors, read_message
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import data_of, experiment_of, hub_of, participation, scores_of, sites_of
from tests.deploy.hub.liars import HONEST, LIAR, MOST, OUT, Liar, Lie, claiming, cost, run


def test_a_lie_out_of_scale_is_refused_and_named_and_costs_nothing_more() -> None:
    told = "-100 times its model"
    assert cost("FedAvg", told, "no guard", 1, 10) > 10
    assert cost("FedAvg", told, "default", 1, 10) <= MOST
    found = run("FedAvg", told, "default", 0, 10)
    assert (found.named, found.others, found.error) == (10, [], "")


@pytest.mark.second
def test_a_lie_within_scale_has_no_influence_under_the_robust_rule() -> None:
    told = "-3 times its update"
    assert cost("pFedMe", told, "no guard", 1, 10) > 5
    assert cost("pFedMe", told, "robust", 1, 10) <= MOST
    found = run("pFedMe", told, "robust", 0, 10)
    assert found.named + found.apart >= 5
    assert (found.others, found.error) == ([], "")


DATA = data_of(sites=4)


def lying(folder: Path, told: Lie, **guard: object) -> Path:
    """A short run of four tiny sites with one liar; the hub's folder."""
    hub = hub_of(folder / "hub", experiment_of(["fedavg"], rounds=2), DATA, guard=guard)
    run_hub(hub, Liar(InProcess(sites_of(folder, DATA)), told))
    return hub


def kept(hub: Path) -> dict[str, bytes]:
    message = read_message(hub / "checkpoints" / "t__fedavg__seed0.hub")
    assert message is not None
    return {name: vector.tobytes() for name, vector in message.vectors.items()}


def test_a_site_that_claims_too_many_rows_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    """It keeps its place: the others have approved a study with four sites."""
    lines = participation(lying(tmp_path, claiming(10**9, HONEST)))
    assert [line["answered"] for line in lines] == [["site-1", "site-2", "site-3"]] * 2
    assert all("it claims 1,000,000,000 train rows" in line["refused"][LIAR] for line in lines)


def test_a_cap_of_weights_bounds_what_a_claim_is_worth(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With equal weights the claim changes nothing: the run equals the honest one in every bit."""
    honest = kept(lying(tmp_path / "a", HONEST, weight_cap=0.25))
    assert not caplog.text
    capped = kept(lying(tmp_path / "b", claiming(10**6, HONEST), weight_cap=0.25))
    assert "of the 1000000 training rows of site 'site-4'" in caplog.text
    assert "(guard.weight_cap = 0.25)" in caplog.text
    assert capped == honest
    free = kept(lying(tmp_path / "c", claiming(10**6, HONEST)))
    assert free != honest  # by default no cap


@pytest.mark.parametrize(("field", "why"), [("count", "it joined with"), ("sums", "between 0 and")])
def test_scores_count_no_more_samples_than_the_site_joined_with(
    field: str, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def told(task: str, round: int, honest: Message, received: Vectors) -> Message:
        if task != "evaluate":
            return honest
        if field == "sums":
            return Message(honest.header, {n: np.asarray(v + 10**6, v.dtype) for n, v in honest.vectors.items()})
        scores = honest.header["scores"]
        large = {m: {s: {**one, "count": 10**6} for s, one in by.items()} for m, by in scores.items()}
        return Message({"scores": large}, honest.vectors)

    scores = scores_of(lying(tmp_path, told), "t/fedavg/seed0")
    assert {int(score.count[3]) for score in scores.values()} == {0}
    assert all(score.count[:3].min() > 0 for score in scores.values())
    assert f"the scores of site '{LIAR}' do not count: " in caplog.text
    assert why in caplog.text


def test_a_neighbour_out_of_scale_is_named_and_its_model_is_not_mixed(tmp_path: Path) -> None:
    """Without a server each site checks its neighbours itself."""
    sites = sites_of(tmp_path, DATA)
    ask = sites[LIAR].trainer.call

    def lie(message: Message, seconds: float) -> Message:
        answer = ask(message, seconds)
        if message.header["task"] != "local":
            return answer
        large = {n: v * 1000 if n.partition("/")[0] == "message" else v for n, v in answer.vectors.items()}
        return Message(answer.header, large)

    sites[LIAR].trainer.call = lie  # type: ignore[method-assign]
    hub = hub_of(tmp_path / "hub", experiment_of(["dfedu"], rounds=2), DATA)
    run_hub(hub, InProcess(sites))
    for line in participation(hub):
        named = {site: why[LIAR] for site, why in line["neighbours_missing"].items() if LIAR in why}
        assert named
        assert all(why.startswith("its message is out of scale: norm ") for why in named.values())
        assert not any({*why} - {LIAR} for site, why in line["neighbours_missing"].items() if site != LIAR)


def test_400_mb_are_refused_by_their_shape_without_memory(tmp_path: Path) -> None:
    """The lie is an array that claims 400 MB and holds 4 bytes: whoever copied it would need all."""
    lying(tmp_path / "a", HONEST)  # what is imported and compiled is no part of the measurement
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = peak()
    lines = participation(lying(tmp_path / "b", OUT["400 MB"]))
    assert peak() - before < 200e6
    assert all(" bytes; it can have at most " in line["missing"][LIAR] for line in lines)
    assert [line["answered"] for line in lines] == [["site-1", "site-2", "site-3"]] * 2


def peak() -> int:
    """The most bytes of memory that this process has had."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
