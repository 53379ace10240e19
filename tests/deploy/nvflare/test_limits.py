"""An answer that is larger than it can be is cut off while it arrives: by parts, and over the real engine."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nvflare")

from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.fuel.f3.message import Message
from nvflare.fuel.f3.streaming.stream_const import STREAM_CHANNEL, STREAM_DATA_TOPIC, StreamHeaderKey

from idiolect.core.errors import StoreError
from idiolect.deploy.nvflare.jobs import read_end, write_job
from idiolect.deploy.nvflare.limits import LATE, SLACK, Meter, TooLarge
from idiolect.deploy.nvflare.session import open_session
from idiolect.deploy.nvflare.supervisor import Watch
from tests.deploy.nvflare.federation import Federation

MOST = 1000


class Cell:
    """The engine's end of the network: keeps the filter, and notes which streams are refused."""

    def __init__(self) -> None:
        self.refused = list[Any]()
        self.byte_receiver = SimpleNamespace(reject=lambda message, error: self.refused.append(message))
        self.core_cell = SimpleNamespace(add_incoming_filter=self.add)

    def add(self, channel: str, topic: str, filter: Any) -> None:
        assert (channel, topic) == (STREAM_CHANNEL, STREAM_DATA_TOPIC)
        self.filter = filter


def part(stream: int, size: int, named: int = 0, site: str = "site-2") -> Message:
    headers = {
        MessageHeaderKey.ORIGIN: f"{site}.job",
        StreamHeaderKey.STREAM_ID: stream,
        StreamHeaderKey.SIZE: named,
    }
    return Message(headers, bytes(size))


@pytest.fixture
def metered() -> tuple[Meter, Cell, list[tuple[str, TooLarge]]]:
    cell, over = Cell(), list[tuple[str, TooLarge]]()
    meter = Meter(cell)
    meter.begin(["site-1", "site-2"], MOST, lambda site, why: over.append((site, why)))
    return meter, cell, over


def test_a_stream_that_names_a_larger_size_is_refused_at_its_first_part(metered: Any) -> None:
    _, cell, over = metered
    assert cell.filter(part(1, 10, named=MOST + SLACK)) is None
    refused = cell.filter(part(2, 10, named=MOST + SLACK + 1))
    assert refused is not None
    assert not refused.payload
    assert [site for site, _ in over] == ["site-2"]
    assert str(over[0][1]) == "sent more than 1,000 bytes, the most that this answer can have; it was cut off"
    assert len(cell.refused) == 1


def test_a_stream_that_is_longer_than_it_says_is_cut_off(metered: Any) -> None:
    _, cell, over = metered
    step = SLACK // 4
    kept = [cell.filter(part(1, step, named=10)) is None for _ in range(6)]
    assert kept == [True] * 4 + [False] * 2
    assert len(over) == 1  # reported once
    assert cell.filter(part(2, 1)) is not None  # nothing more of this site in this call
    assert cell.filter(part(3, 1, site="site-1")) is None
    assert cell.filter(part(4, SLACK * 9, site="server")) is None  # the engine's own processes


def test_many_small_streams_are_cut_off_and_the_next_call_counts_anew(metered: Any) -> None:
    meter, cell, over = metered
    kept = [cell.filter(part(number, SLACK // 2)) is None for number in range(2 * LATE + 2)]
    assert kept == [True] * (2 * LATE) + [False] * 2
    meter.begin(["site-2"], MOST, lambda site, why: over.append((site, why)))
    assert cell.filter(part(99, 10)) is None


def test_an_engine_without_filters_is_an_error() -> None:
    with pytest.raises(StoreError, match=r"cannot limit messages.*nvflare 2\.9 is needed"):
        Meter(SimpleNamespace())


HUGE = 400_000_000


@pytest.mark.second
def test_400_mb_are_cut_off_and_cost_the_hub_neither_memory_nor_time(tmp_path: Path) -> None:
    """Beside the call, where the hub fetches it, and inside the call, where the site pushes it."""
    federation = Federation(tmp_path)
    kits, sites = federation.kits, list(federation.kits.sites)
    federation.want(("star", 1000), ("inside", 1000), ("huge", 1000), ("star", 250_000))
    try:
        federation.start()
        Watch(
            lambda: open_session(kits.lead, 5),
            lambda n: write_job(tmp_path, f"job-{n}", {}, 3),
            sites,
            3,
            lambda: len(federation.rounds()),
            lambda: read_end(federation.hub),
        ).run()
    finally:
        federation.stop()
    rounds: list[dict[str, Any]] = federation.rounds()  # pyright: ignore[reportAssignmentType]
    if "MEASURED" in os.environ:
        for told in rounds:
            print(told["kind"], told["seconds"], told["memory"], told["peak"] - told["memory"], told["missing"])
    before, *huge, after = rounds
    assert before["right"] == dict.fromkeys(sites, True)
    assert {site: after["right"].get(site) for site in ("site-1", "site-3")} == {"site-1": True, "site-3": True}
    for told in huge:
        assert told["right"] == {"site-1": True, "site-3": True}
        assert "it was cut off" in told["missing"]["site-2"]
        assert told["seconds"] < 20
        assert told["peak"] - told["memory"] < HUGE / 4
