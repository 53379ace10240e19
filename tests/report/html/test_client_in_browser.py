"""A client's page, search, keyboard, phone, paper, dark, hostile names and partial results, in a browser."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.report.html.payloads import HOSTILE, POINT, payload

DATA = payload(clients=16, methods=6, cells=2)
CLIENTS = DATA["cells"][0]["clients"]


@pytest.fixture(scope="module")
def opened(open_page: Callable[..., Any]) -> Any:
    return open_page(DATA)


@pytest.fixture
def page(opened: Any) -> Iterator[Any]:
    """The shared page on its own address; afterwards nothing was logged and nothing asked."""
    opened.page.evaluate("idiolect.drawAll()")
    yield opened.page
    if opened.page.locator("#client").is_visible():
        opened.page.keyboard.press("Escape")
    assert opened.log == []


def name_of(page: Any) -> str:
    """Whose page is open."""
    return page.locator("#client h2").inner_text()


def test_a_click_opens_a_client_and_escape_and_back_close_it(page: Any) -> None:
    dot = page.locator(f"{POINT}[data-client='7']")
    dot.scroll_into_view_if_needed()
    dot.click()
    page.locator("#client h2").wait_for()
    assert name_of(page) == "hospital 7"
    assert page.evaluate("location.hash") == "#client-0-7"
    page.keyboard.press("Escape")
    page.locator("#client").wait_for(state="hidden")
    assert page.evaluate("location.hash") == ""
    dot.click()
    page.locator("#client h2").wait_for()
    page.go_back()
    page.locator("#client").wait_for(state="hidden")


def test_a_clients_page_shows_its_data_scores_and_mistakes(page: Any) -> None:
    page.evaluate("location.hash = 'client-0-3'")
    page.locator("#client h2").wait_for()
    page.evaluate("idiolect.drawAll()")
    sheet = page.locator("#client")
    text = sheet.inner_text()
    assert str(CLIENTS["train"][3]) in text
    best = max(CLIENTS["scores"].values(), key=lambda scores: scores[3])[3]
    assert f"scores best here: {100 * best:.1f} %" in text
    assert sheet.locator(".mine circle").count() == len(CLIENTS["scores"])
    assert sheet.locator("figure .bar rect").count() == 10
    figures = sheet.locator(".confusion figure")
    assert figures.count() == 2
    shown = sheet.locator("select").input_value()
    wrong = sum(count > 0 for row in CLIENTS["confusion"][shown][3] for count in row)
    assert figures.first.locator(".heat rect").count() == wrong
    sheet.locator("select").select_option("m1")
    assert figures.first.locator("h3").inner_text() == "Ditto, personal"
    sheet.get_by_role("button", name="The next client").click()
    assert name_of(page) == "hospital 4"
    assert page.evaluate("location.hash") == "#client-0-4"


@pytest.mark.second
def test_axe_finds_no_serious_fault_on_a_clients_page(page: Any, faults: Callable[..., list[str]]) -> None:
    page.evaluate("location.hash = 'client-0-5'")
    page.locator("#client h2").wait_for()
    page.evaluate("idiolect.drawAll()")
    assert faults(page, "#client") == []


def test_search_marks_dots_and_enter_opens_the_client(page: Any) -> None:
    find = page.get_by_role("combobox", name="Find a client by name")
    find.fill("hospital 1")
    assert page.locator("#found-0 [role=option]").first.inner_text().startswith("hospital 1\n")
    matches = sum("hospital 1" in name for name in CLIENTS["names"])
    assert page.locator(f"{POINT}.found").count() == matches
    assert page.locator("svg.searching").count() > 1
    find.press("ArrowDown")
    find.press("Enter")
    page.locator("#client h2").wait_for()
    assert name_of(page) == "hospital 10"
    page.keyboard.press("Escape")
    find.fill("nobody")
    assert "No client of this name" in page.locator("#found-0").inner_text()
    find.press("Escape")
    assert find.input_value() == ""
    assert page.locator("svg.searching").count() == 0


def test_the_keyboard_alone_reaches_dots_and_opens_them(page: Any) -> None:
    page.locator("#clients-0 .pick select").focus()
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.dataset.client")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.dataset.client")
    assert None not in (first, second)
    assert first != second
    assert CLIENTS["names"][int(second)] in page.locator("#tip").inner_text()
    page.keyboard.press("Enter")
    page.locator("#client h2").wait_for()
    assert name_of(page) == CLIENTS["names"][int(second)]
    page.keyboard.press("Escape")
    page.locator("#client").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.dataset.client") == second


def test_federations_are_chosen_on_screen_and_all_printed(page: Any) -> None:
    page.get_by_label("Results of").select_option("1")
    assert [page.locator(f"#cell-{k}").is_visible() for k in (0, 1)] == [False, True]
    page.emulate_media(media="print")
    assert [page.locator(f"#cell-{k}").is_visible() for k in (0, 1)] == [True, True]
    assert not page.locator("#cell-0 .rule").is_visible()
    page.emulate_media(media="screen")
    page.get_by_label("Results of").select_option("0")


def test_everything_is_drawn_for_paper_and_black_on_white(open_page: Callable[..., Any]) -> None:
    opened = open_page(DATA, color_scheme="dark")
    assert opened.page.locator("#curves-1 svg.swatch").count() == 0
    assert opened.page.locator("#curves-1 svg").count() == 0  # lazy: nobody looked
    pdf = opened.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert opened.page.locator("#curves-1 .plot svg .curve").count() >= 1
    opened.page.emulate_media(media="print")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.evaluate("getComputedStyle(document.body).color") == "rgb(26, 29, 33)"
    assert opened.log == []


def test_hostile_names_are_only_names(open_page: Callable[..., Any]) -> None:
    opened = open_page(payload(names=HOSTILE), viewport={"width": 360, "height": 740})
    page = opened.page
    page.evaluate("idiolect.drawAll()")
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").inner_text() == HOSTILE[0]
    assert page.locator("img").count() == 0
    shown = page.eval_on_selector_all(".chip .name", "all => all.map(one => [one.textContent, one.title])")
    assert [title for _, title in shown] == HOSTILE[:6]
    assert [len(text) <= 300 for text, _ in shown] == [True] * 6
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for client in (2, 3, 4, 6):
        page.evaluate(f"location.hash = 'client-0-{client}'")
        page.locator(f"#client h2 .name[title={quoted(HOSTILE[client])}]").wait_for()
        page.evaluate("idiolect.drawAll()")
        assert page.evaluate("document.getElementById('client').scrollWidth <= 360")
    assert page.evaluate("window.hacked") is None
    assert opened.log == []


def quoted(text: str) -> str:
    """A string of a CSS selector."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.second
def test_what_is_not_there_is_left_out(open_page: Callable[..., Any]) -> None:
    """One client, one seed, no curves, no graph, no reference, a score that diverged: the page still stands."""
    data = payload(clients=1, methods=2)
    cell = data["cells"][0]
    cell |= {"curves": None, "graph": None, "graphs": [], "sweep": None, "tables": []}
    cell["clients"] |= {
        "labels": None,
        "skew": [None],
        "beyond": {},
        "distances": None,
        "confusion": None,
        "local": None,
        "shared": None,
        "half": {},
        "label_values": [[0.0, 1.0, 2.0, 3.0, 4.0]],
        "residuals": {"m0": [[0.5, -1.0, 0.2]], "m1": [[0.1, 0.4, None]]},
    }
    cell["clients"]["scores"]["m1"] = [None]
    data |= {"leaks": None, "missing": [], "chosen": [], "seeds": [0]}
    opened = open_page(data)
    page = opened.page
    page.evaluate("location.hash = 'client-0-0'")
    page.locator("#client h2").wait_for()
    page.evaluate("idiolect.drawAll()")
    assert page.locator("#client .bar rect").count() > 0
    page.keyboard.press("Escape")
    page.locator("#client").wait_for(state="hidden")
    assert "No audit" in page.locator("#leaks").inner_text()
    assert page.locator("figure.chart svg").count() == 0
    assert page.locator("#clients-0 tbody tr").count() == 1  # its scores, where no chart has them
    assert opened.log == []
    data["cells"][0]["clients"] = None
    opened = open_page(data)
    assert opened.page.locator(".main-table tbody tr").count() == 2
    assert opened.log == []
    opened = open_page(data | {"cells": []})
    assert data["headline"] in opened.page.locator("#answer").inner_text()
    assert opened.log == []


def test_errors_of_regression_and_learned_relations(open_page: Callable[..., Any]) -> None:
    data = payload(clients=10, methods=3)
    cell = data["cells"][0]
    cell["metric"] |= {"name": "RMSE", "percent": False, "higher": False, "task": "regression"}
    edges = [[0, 1, 0.5], [1, 2, -0.25], [3, 3, 1.0]]
    cell["graphs"] = [{"title": "Relations", "edges": edges, "eigenvalues": [], "learned": True, "note": ""}]
    scores = cell["clients"]["scores"]
    scores["m1"][0], scores["m2"][0] = 90.0, 0.5  # one client is far off with the first, and best with the second
    opened = open_page(data)
    page = opened.page
    page.locator("#clients-0 .pick select").select_option("m1")
    page.evaluate("idiolect.drawAll()")
    note = page.locator("#clients-0 figure .note").first.inner_text()
    assert "below the line" in note
    assert "beyond the axis, drawn at its edge" in note
    assert page.locator("#graph-0 svg .heat rect").count() == 5
    wins = sum(scores["m1"][k] < scores["m2"][k] for k in range(10))
    label = page.locator("#clients-0 figure svg").nth(0).get_attribute("aria-label")
    assert f"{wins} of 10 clients score better" in label
    assert opened.log == []
