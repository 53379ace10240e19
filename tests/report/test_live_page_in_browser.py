"""The live page in a browser, of a store that is being written: from the first look until the runs are over."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from idiolect.report.live_page import LivePage
from idiolect.report.standing import Watching
from idiolect.study.run.following import Pulse, end_pulse
from idiolect.study.store.store import Store
from tests.report import stores
from tests.report.html.payloads import HOSTILE
from tests.report.test_standing import standing

SECOND = 1100
"""Milliseconds of the page's clock, after which it asks again."""


class Runs:
    """FedAvg and Local in a store: rounds that a test writes, as a process at work would."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, Store(folder)
        self.exp = stores.experiment([{"name": "fedavg"}, {"name": "local"}], seeds=1)
        self.store.set_fact("experiment", self.exp.model_dump(mode="json"))
        self.runs: dict[str, str] = {}
        self.pulse(0)

    def pulse(self, done: int) -> None:
        Pulse(time.time(), 1.0, float(done), 40.0, 10.0).write(self.folder)

    def round(self, round: int, fedavg: float, local: float) -> None:
        """Write a round of both methods: the share of samples that is right at every client."""
        for title, model, score in (("fedavg", "global", fedavg), ("local", "local", local)):
            if title not in self.runs:
                self.runs[title] = stores.start(self.store, self.exp, "cell0", title, 0)
            scores = {model: (score,) * 3 + (stores.NAN,)}
            stores.record(self.store, self.runs[title], round, scores, splits=("train", "test"))
        self.pulse(2 * round)

    def end(self) -> None:
        for run in self.runs.values():
            self.store.finish(run, "done")
        end_pulse(self.folder)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    monkeypatch.setattr("idiolect.study.run.following.FRESH", 1e9)  # however long a test takes
    made = Runs(tmp_path / "toy")
    yield made
    made.store.close()


def row(page: Any, method: str) -> list[str]:
    """What stands in a method's row."""
    return page.locator("tbody tr", has=page.get_by_role("rowheader", name=method)).locator("td").all_inner_texts()


def test_a_run_from_its_first_round_to_its_end(
    runs: Runs, visit: Callable[..., Any], faults: Callable[..., list[str]]
) -> None:
    with LivePage(Watching(runs.folder).look) as served:
        opened = visit(served.url, clock=True)
        page = opened.page
        page.get_by_text("0 of 40 rounds").wait_for()
        assert page.get_by_role("heading", level=1).inner_text() == "toy"
        assert row(page, "fedavg")[1:2] == ["0/20"]
        assert row(page, "local")[-1] == "waiting"
        assert faults(page) == []

        runs.round(0, 0.1, 0.1)
        runs.round(5, 0.3, 0.9)
        page.clock.run_for(SECOND)
        page.get_by_text("10 of 40 rounds").wait_for()
        assert page.get_by_role("progressbar", name="all rounds").evaluate("bar => bar.position") == 0.25
        assert (row(page, "fedavg")[0].strip(), row(page, "fedavg")[1]) == ("global 30.00 ↑", "5/20")
        assert row(page, "local")[0].startswith("local 90.00")
        assert page.locator("svg[role=img] .course").count() == 2
        assert page.locator(".hint").count() == 0

        runs.round(10, 0.31, 0.9)
        runs.round(15, 0.32, 0.9)
        page.clock.run_for(SECOND)
        page.get_by_text("Local ahead by 58 points at round 15").wait_for()
        assert row(page, "fedavg")[1] == "15/20"
        assert page.title() == "toy: 75 %"
        assert faults(page) == []

        runs.round(20, 0.33, 0.9)
        runs.end()
        page.clock.run_for(SECOND)
        page.locator("#state", has_text="done").wait_for()
        assert page.title() == "toy: done"
        assert [row(page, name)[-1] for name in ("fedavg", "local")] == ["done", "done"]
        assert opened.asked.count("") == 1  # never loaded anew
        assert {*opened.asked} == {"", "page.css", "page.js", "state.json"}
        before = len(opened.asked)
        page.clock.run_for(20 * SECOND)
        assert page.evaluate("fetch('page.css').then(answer => answer.status)") == 200
        assert opened.asked[before:] == ["page.css"]  # the page asks no more
    assert opened.log == []


def test_hostile_names_are_only_names_on_a_phone(visit: Callable[..., Any], faults: Callable[..., list[str]]) -> None:
    seen = standing()
    lines = [
        replace(seen.lines[0], method=name, cell=HOSTILE[k % 2], hints={"not learning": f"{name} learns nothing"})
        for k, name in enumerate(HOSTILE)
    ]
    lines += [replace(seen.lines[1], method=f"last {name}", message=name) for name in HOSTILE]
    with LivePage(lambda: replace(seen, name=HOSTILE[0], text=HOSTILE[2], lines=tuple(lines))) as served:
        opened = visit(served.url, clock=True, viewport={"width": 360, "height": 740}, color_scheme="dark")
        page = opened.page
        page.get_by_role("heading", name=HOSTILE[0]).first.wait_for()
        titles = page.eval_on_selector_all("tbody bdi", "all => all.map(one => one.title)")
        assert sorted(titles) == sorted(line.method for line in lines)
        assert page.locator("script").count() == 1
        assert page.locator("img, b").count() == 0
        assert page.evaluate("window.hacked") is None
        shown = page.eval_on_selector_all("tbody bdi", "all => Math.max(...all.map(one => one.textContent.length))")
        assert shown <= 80
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        table = page.get_by_role("region").last
        table.evaluate("table => { table.focus(); table.scrollLeft = 40; }")
        page.evaluate("document.querySelector('tbody').dataset.old = 1")
        page.clock.run_for(SECOND)
        page.locator("tbody[data-old]").wait_for(state="detached")  # the tables are made anew,
        assert table.evaluate("table => [table === document.activeElement, table.scrollLeft]") == [True, 40]
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 21, 21)"
        assert faults(page) == []
        assert opened.log == []
