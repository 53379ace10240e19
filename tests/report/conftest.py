"""Toy comparisons that nobody writes to; and pages that are opened in a headless Chromium."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.report import stores


@pytest.fixture(scope="package")
def advice():
    """What a race of two rounds on two divisions advises three clients."""
    from idiolect.data import from_arrays
    from idiolect.study.advice.advise import advise

    rng = np.random.default_rng(0)
    parts = {}
    for i in range(3):
        x = rng.normal(size=(30, 2))
        parts[f"c{i}"] = (x, 10 * x[:, 0] + 5 * rng.normal(size=30))
    return advise(from_arrays(parts, title="made", task="regression"), methods=(), splits=2, rounds=2)


@pytest.fixture(scope="package")
def toy(tmp_path_factory):
    return stores.toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="package")
def said(tmp_path_factory):
    return stores.said(tmp_path_factory.mktemp("said"))


@pytest.fixture(scope="package")
def by_class(tmp_path_factory):
    return stores.by_class(tmp_path_factory.mktemp("by-class"))


@pytest.fixture(scope="package")
def timed(tmp_path_factory):
    return stores.timed(tmp_path_factory.mktemp("timed"))


@pytest.fixture(scope="package")
def tuned(tmp_path_factory):
    return stores.tuned(tmp_path_factory.mktemp("tuned"))


@pytest.fixture(scope="package")
def cell(toy):
    return toy.experiment.cells[0]


@dataclass
class Opened:
    """A page that was opened, and what it said and asked for of others while it lived; asked: of its own address."""

    page: Any
    address: str
    log: list[str]
    asked: list[str]


@pytest.fixture(scope="session")
def visit(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Open an address. clock: the test can move that of the page; options: of the browser's context."""
    contexts: list[Any] = []

    def visited(address: str, clock: bool = False, **options: Any) -> Opened:
        options = {"viewport": {"width": 1100, "height": 800}, "reduced_motion": "reduce"} | options
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page, log, asked = context.new_page(), list[str](), list[str]()
        page.on("console", lambda message: log.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: log.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (log.append(f"dialog: {dialog.message}"), dialog.dismiss()))

        def note(request: Any) -> None:
            own = request.url.split("#")[0]
            inside = own == address or (address.endswith("/") and own.startswith(address))
            (asked if inside else log).append(own[len(address) :] if inside else f"asks {own[:99]}")

        page.on("request", note)
        if clock:
            page.clock.install()
        page.goto(address)
        return Opened(page, address, log, asked)

    yield visited
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def faults() -> Callable[..., list[str]]:
    """What axe finds on a page that is serious or critical; with some rules, or all."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

    def found(page: Any, context: str | None = None, rules: tuple[str, ...] = ()) -> list[str]:
        options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
        violations = axe.Axe().run(page, context, options).response["violations"]
        grave = [one for one in violations if one["impact"] in ("serious", "critical")]
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:300]} {one['nodes'][0]['failureSummary'][:300]}" for one in grave
        ]

    return found
