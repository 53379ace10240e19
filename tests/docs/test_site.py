"""The built site, opened as files: the search finds pages, no page is too wide, and every link leads somewhere."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.second
WIDTHS = (1300, 390)
SEARCHED = {"new clients": "new-clients.html", "cohort": "concepts/cohort.html", "pFedMe": "methods/pfedme.html"}
"""What a reader types, and a page that is among the first results."""


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    """One page of the browser for all tests; it may not ask the network for anything."""
    context = browser.new_context(viewport={"width": WIDTHS[0], "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    page = context.new_page()
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert not [url for url in asked if not url.startswith(("file:", "data:", "about:"))]


class Anchors(HTMLParser):
    """The names of a page that a link can lead to, and all that the page points to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names, self.links = set[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element's names and links."""
        for key, value in attrs:
            if key in ("id", "name") and value:
                self.names.add(value)
            if key in ("href", "src") and value is not None and tag != "base":
                self.links.append(value)


@pytest.mark.parametrize("words", SEARCHED)
def test_the_search_of_a_page_that_is_opened_as_a_file_finds(words: str, page: Any, site: Path) -> None:
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").click()
    page.keyboard.type(words)
    first = page.locator("a.md-search-result__link")
    first.first.wait_for()
    found = [first.nth(at).get_attribute("href") for at in range(min(first.count(), 10))]
    assert any(SEARCHED[words] in link for link in found), found
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"^file:.*\.html\?h="))


BEYOND = """
() => {
  const width = window.innerWidth;
  const scrolls = (one) => one && (/auto|scroll/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
  const boxes = ["pre", "code", "table", "img", ".eqs"].map((one) => `article ${one}`).join();
  const beyond = [...document.querySelectorAll(boxes)].filter(
    (one) => one.getBoundingClientRect().right > width + 1 && !scrolls(one));
  const whole = document.documentElement.scrollWidth;
  const wide = whole > width ? [`the page: ${whole}`] : [];
  return [...wide, ...beyond.slice(0, 3).map((one) => one.outerHTML.slice(0, 120))];
}
"""
"""What lies beyond the right edge of the window and cannot be scrolled to inside a box of its own."""


def test_no_page_is_wider_than_its_window_and_no_code_runs_off_its_edge(browser: Any, site: Path) -> None:
    """The scripts of the pages are off: with them each of the 300 pages takes a second, and they change no width."""
    context = browser.new_context(java_script_enabled=False)
    page, wide = context.new_page(), dict[str, list[str]]()
    files = sorted(site.rglob("*.html"))
    for file in files:
        page.goto(file.as_uri(), wait_until="load")  # an image that loads has no width yet
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            if found := page.evaluate(BEYOND):
                wide[f"{file.relative_to(site)} at {width}"] = found
    context.close()
    assert len(files) > 200
    assert not wide


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index", "commands/compare", "methods/pfedme", "tutorial"])
def test_nor_with_the_scripts_of_the_page(name: str, width: int, page: Any, site: Path) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((site / f"{name}.html").as_uri(), wait_until="load")
    page.wait_for_timeout(300)  # what opens slowly has opened
    assert page.evaluate(BEYOND) == []


def test_every_link_and_anchor_of_the_site_leads_somewhere(site: Path) -> None:
    pages = {file.resolve(): Anchors(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    dead = {
        link for link in re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text()) if not (site / link).is_file()
    }
    for file, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or (file.name == "404.html" and link.startswith("/")):
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            place = unquote(parts.fragment)
            known = target not in pages or place in ("", "__search") or place in pages[target].names
            if not target.is_file() or not known:
                dead.add(f"{file.relative_to(site.resolve())}: {link}")
    assert not dead, sorted(dead)[:50]
