"""One headless Chromium for all tests of the page; they are skipped where there is none."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from idiolect.report.html.render import page_html

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass
class Opened:
    """A page that was opened, and what it said and asked for while it lived."""

    page: Any
    address: str
    log: list[str]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'"
    )
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def open_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Opened]]:
    """Render a payload, open the file, wait until it is ready. options: of the browser's context."""
    contexts: list[Any] = []

    def opened(payload: dict[str, Any], **options: Any) -> Opened:
        path: Path = tmp_path_factory.mktemp("page") / "report.html"
        path.write_text(page_html(payload))
        address = path.as_uri()
        options = {"viewport": {"width": 1100, "height": 800}, "reduced_motion": "reduce"} | options
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        page, log = context.new_page(), []
        page.on("console", lambda message: log.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: log.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (log.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request", lambda request: request.url.split("#")[0] == address or log.append(f"asks {request.url[:99]}")
        )
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
        return Opened(page, address, log)

    yield opened
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
