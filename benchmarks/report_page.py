"""The report's page, measured as a reader meets it: made by the command, opened in Chromium, used.

    python -m benchmarks.report_page

The runs are filled without training (`tests.report.html.stores`). It prints the table of docs/report-charts.md.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.report.conftest import NAMES
from tests.report.html.payloads import POINT
from tests.report.html.stores import SIX, large

SIZES = ((100, 10), (1000, 3))
"""(clients, seeds) of each page; the methods are `SIX`."""
REPEATS = 5


def made(folder: Path, page: Path) -> float:
    """Seconds of the command `idiolect report FOLDER -o PAGE`, from its start to its end."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "idiolect", "report", str(folder), "-o", str(page)], check=True, capture_output=True
    )
    return time.perf_counter() - began


def used(browser: Browser, path: Path) -> tuple[float, float, float]:
    """Seconds until a freshly opened page answers, of one switch in the legend, and of opening a client's page."""
    page = browser.new_context(viewport={"width": 1100, "height": 800}, reduced_motion="reduce").new_page()
    answers = _seconds(
        lambda: (page.goto(path.as_uri()), page.wait_for_selector("html[data-ready]", state="attached"))
    )
    switch = page.locator(".chip input").nth(1)
    switch.scroll_into_view_if_needed()
    switched = _seconds(lambda: (switch.uncheck(), page.evaluate("idiolect.drawAll()"), _painted(page)))
    dot = page.locator(POINT).first
    dot.scroll_into_view_if_needed()
    opened = _seconds(lambda: (dot.click(force=True), page.wait_for_selector("#client h2"), _painted(page)))
    page.context.close()
    return answers, switched, opened


def _seconds(act: Callable[[], Any]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _painted(page: Page) -> None:
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def main() -> None:
    """Measure both sizes; a line each."""
    found = next(filter(None, map(shutil.which, NAMES)))
    print("| page | made in | bytes | answers after | one switch in the legend | a client's page |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        for clients, seeds in SIZES:
            store, page = Path(folder) / f"{clients}", Path(folder) / f"{clients}.html"
            large(store, clients, seeds)
            makes = [made(store, page) for _ in range(3)]
            browser = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
            uses = [used(browser, page) for _ in range(REPEATS)]
            browser.close()
            about = f"{clients:,} clients x {len(SIX)} methods x {seeds} seeds"
            times = " | ".join(f"{statistics.median(each):.2f} s" for each in zip(*uses, strict=True))
            print(f"| {about} | {statistics.median(makes):.1f} s | {page.stat().st_size:,} | {times} |", flush=True)


if __name__ == "__main__":
    main()
