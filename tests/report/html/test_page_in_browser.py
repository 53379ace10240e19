"""The page in a browser: charts draw, the legend rules them, the table sorts, and nothing is asked of the network."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.report.html.payloads import POINT, payload

DATA = payload(clients=16, methods=6)
CELL = DATA["cells"][0]


@pytest.fixture(scope="module")
def opened(open_page: Callable[..., Any]) -> Any:
    return open_page(DATA)


@pytest.fixture
def page(opened: Any) -> Iterator[Any]:
    """The shared page, every chart drawn; afterwards nothing was logged and nothing asked."""
    page = opened.page
    page.evaluate("idiolect.drawAll()")
    yield page
    page.mouse.move(0, 0)
    page.locator("#answer").click(position={"x": 1, "y": 1})
    assert opened.log == []


def chart(page: Any, part: str, number: int = 0) -> Any:
    """One figure of a part of the page."""
    return page.locator(f"#{part}-0 figure.chart").nth(number)


def test_the_top_says_the_headline_and_what_is_missing(page: Any) -> None:
    top = page.locator("#answer").inner_text()
    texts = [DATA["title"], DATA["headline"], DATA["numbers"], *DATA["missing"]]
    assert all(text in top for text in [*texts, *(chip["title"] for chip in DATA["chips"])])
    said = page.locator("main").inner_text()
    assert all(leak["text"] in said for leak in DATA["leaks"])
    assert DATA["command"] in said
    assert DATA["protocol"] in said


def test_every_chart_has_as_many_marks_as_data(page: Any) -> None:
    clients, models = CELL["clients"], CELL["models"]
    assert page.locator(POINT).count() == len(clients["names"])
    assert page.locator("#why-0 figure").count() == 3
    for number in range(3):
        assert chart(page, "why", number).locator("svg .point").count() == len(clients["names"])
    assert chart(page, "curves").locator("svg .curve path").count() == len(models)
    assert chart(page, "curves").locator("svg .band path").count() == len(models)
    filled = sum(count > 0 for row in clients["labels"]["counts"] for count in row)
    assert chart(page, "data").locator("svg .heat rect").count() == filled
    assert chart(page, "graph").locator("svg .point").count() == len(clients["names"])
    assert chart(page, "graph").locator("svg .edge path, svg .edge line").count() == len(CELL["graph"]["edges"])
    assert chart(page, "graph", 1).locator("svg .eigenvalue circle").count() == len(CELL["graph"]["eigenvalues"])
    runs = CELL["sweep"]["runs"]
    assert chart(page, "sweep").locator("svg .chosen path").count() == sum(run["chosen"] for run in runs)
    assert chart(page, "sweep").locator("svg .tried path").count() == sum(not run["chosen"] for run in runs)


def test_filled_dots_are_clients_beyond_noise(page: Any) -> None:
    shown = page.locator("#clients-0 select").input_value()
    beyond = CELL["clients"]["beyond"][shown]
    for kind, sign in ((2, 1), (0, 0), (3, -1)):
        assert page.locator(f"#clients-0 figure:nth-child(1) .layer-{kind} .point").count() == beyond.count(sign)
    row = page.locator(f"#clients-0 .winners tr[data-model={shown}] td.number").all_inner_texts()
    assert row == [str(beyond.count(sign)) for sign in (1, 0, -1)] + [str(len(beyond))]


def test_coinciding_curves_are_both_seen_and_outliers_are_cut_with_a_word(page: Any) -> None:
    dashes = page.eval_on_selector_all(
        "#curves-0 figure:nth-of-type(1) .curve path",
        "all => all.map(p => p.closest('[stroke-dasharray]')?.getAttribute('stroke-dasharray'))",
    )
    assert dashes[1] is None
    assert re.fullmatch(r"[\d.]+ [\d.]+", dashes[2])
    figure = chart(page, "curves")
    assert "Cut off" in figure.locator(".note").inner_text()
    ticks = figure.locator(".plot svg").first.text_content()
    figure.get_by_label("whole range").check()
    assert "Cut off" not in figure.locator(".note").inner_text()
    assert figure.locator(".plot svg").first.text_content() != ticks
    figure.get_by_label("whole range").uncheck()


def test_a_header_sorts_and_says_so(page: Any) -> None:
    head = page.locator(".main-table thead th").nth(1)
    place = "rows => rows.map(row => row.dataset.model)"
    scores = {row["model"]: row["cells"][1]["sort"] for row in CELL["table"]["rows"]}
    best_first = sorted(scores, key=scores.__getitem__, reverse=True)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert page.eval_on_selector_all(".main-table tbody tr", place) == best_first
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert page.eval_on_selector_all(".main-table tbody tr", place) == best_first[::-1]
    page.locator(".main-table thead th").nth(4).get_by_role("button").click()
    assert page.eval_on_selector_all(".main-table tbody tr", place)[-1] == "m5"  # without seconds
    assert head.get_attribute("aria-sort") is None
    assert "bold" in page.locator(f".main-table tr[data-model={best_first[0]}] td").first.get_attribute("class")


def test_column_help_is_told_on_focus_and_to_screen_readers(page: Any) -> None:
    button = page.locator(".main-table thead button").nth(1)
    assert button.get_attribute("aria-description") == CELL["table"]["columns"][1]["help"]
    button.hover()
    assert page.locator("#tip").inner_text() == CELL["table"]["columns"][1]["help"]


def test_the_legend_rules_every_chart(page: Any) -> None:
    chosen = page.locator("#clients-0 select").input_value()
    method = next(model["method"] for model in CELL["models"] if model["key"] == chosen)
    box = page.locator(f".chip input[value={method}]")
    box.uncheck()
    page.evaluate("idiolect.drawAll()")
    assert chart(page, "curves").locator("svg .curve path").count() == len(CELL["models"]) - 1
    assert page.locator("#clients-0 select").input_value() != chosen
    assert page.locator(f"#clients-0 .winners tr[data-model={chosen}]").count() == 0
    page.get_by_role("button", name="All", exact=True).click()
    page.evaluate("idiolect.drawAll()")
    assert box.is_checked()
    assert page.locator("#clients-0 select").input_value() == chosen
    assert chart(page, "curves").locator("svg .curve path").count() == len(CELL["models"])


def test_without_methods_charts_say_so(page: Any) -> None:
    boxes = page.locator(".chip input")
    for number in range(boxes.count()):
        boxes.nth(number).uncheck()
    page.evaluate("idiolect.drawAll()")
    assert chart(page, "curves").locator(".empty").inner_text() == "No method is switched on."
    assert chart(page, "clients").locator(".empty").count() == 1
    page.get_by_role("button", name="All", exact=True).click()
    page.evaluate("idiolect.drawAll()")


def test_a_choice_of_model_changes_the_client_charts(page: Any) -> None:
    first = page.locator(POINT).first.get_attribute("aria-label")
    page.locator("#clients-0 .winners button").last.click()
    page.evaluate("idiolect.drawAll()")
    assert page.locator("#clients-0 .winners tr.chosen").count() == 1
    assert page.locator(POINT).first.get_attribute("aria-label") != first
    page.locator("#clients-0 .winners button").first.click()
    page.evaluate("idiolect.drawAll()")


def test_hover_tells_who_a_dot_is(page: Any) -> None:
    dot = page.locator(f"{POINT}[data-client='7']")
    dot.scroll_into_view_if_needed()
    dot.hover()
    tip = page.locator("#tip").inner_text()
    clients = CELL["clients"]
    assert "hospital 7" in tip
    assert f"{clients['train'][7]} train" in tip
    assert "Local" in tip
    assert f"{100 * clients['scores'][clients['local']][7]:.1f} %" in tip
    top = max(range(10), key=clients["labels"]["counts"][7].__getitem__)
    assert f"label {top}" in tip
    assert "± half of the 95 % interval over seeds" in tip
    page.mouse.move(2, 300)
    assert not page.locator("#tip").is_visible()


def test_hover_over_curves_tells_the_round(page: Any) -> None:
    svg = chart(page, "curves").locator(".plot svg").first
    svg.scroll_into_view_if_needed()
    svg.hover()
    tip = page.locator("#tip").inner_text()
    assert re.match(r"Round \d+", tip)
    assert all(model["title"] in tip for model in CELL["models"])


def test_arrow_keys_tell_the_rounds_of_curves(page: Any) -> None:
    figure = chart(page, "curves")
    slider, tip = figure.get_by_role("slider", name="test accuracy by round"), page.locator("#tip")
    rounds = CELL["curves"]["quantities"][0]["series"][0]["rounds"]
    figure.get_by_label("whole range").focus()
    page.keyboard.press("Tab")
    assert slider.evaluate("one => one === document.activeElement")
    assert tip.inner_text().startswith(f"Round {rounds[-1]}\n")
    rule = figure.locator("svg > line")
    end = rule.get_attribute("x1")
    page.keyboard.press("ArrowLeft")
    assert tip.inner_text().startswith(f"Round {rounds[-2]}\n")
    assert float(rule.get_attribute("x1")) < float(end)
    place = len(rounds) - 2
    means = {one["model"]: one["mean"][place] for one in CELL["curves"]["quantities"][0]["series"]}
    titles = {model["key"]: model["title"] for model in CELL["models"]}
    said = slider.get_attribute("aria-valuetext")
    assert said.startswith(f"Round {rounds[-2]}: ")
    for key, mean in means.items():
        assert f"\u2068{titles[key]}\u2069 {100 * mean:.1f} %".replace("-", "\u2212") in said
    page.keyboard.press("PageDown")
    assert slider.get_attribute("aria-valuenow") == str(rounds[place - 10])
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert slider.get_attribute("aria-valuenow") == slider.get_attribute("aria-valuemin") == str(rounds[0])
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    assert not rule.is_visible()
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    assert not tip.is_visible()


def test_arrow_keys_tell_the_clients_of_the_label_map(page: Any) -> None:
    figure, tip = chart(page, "data"), page.locator("#tip")
    rows = figure.locator("svg .rows rect")
    clients = CELL["clients"]
    assert rows.count() == len(clients["names"])
    figure.get_by_label("Order").focus()
    page.keyboard.press("Tab")
    unusual = sorted(range(len(clients["names"])), key=lambda i: -clients["skew"][i])
    for place, key in ((0, None), (1, "ArrowDown"), (0, "ArrowUp"), (len(unusual) - 1, "End")):
        if key:
            page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.client") == str(unusual[place])
        assert clients["names"][unusual[place]] in tip.inner_text()
    said = rows.last.get_attribute("aria-label")
    counts = clients["labels"]["counts"][unusual[-1]]
    top = max(range(10), key=counts.__getitem__)
    assert f"Client \u2068{clients['names'][unusual[-1]]}\u2069" in said
    assert f"\u2068label {top}\u2069 {100 * counts[top] / sum(counts):.0f} %" in said
    rows.nth(2).hover()
    assert clients["names"][unusual[2]] in tip.inner_text()
    page.keyboard.press("Enter")
    page.locator("#client h2").wait_for()
    assert page.locator("#client h2").inner_text() == clients["names"][unusual[-1]]
    page.keyboard.press("Escape")
    page.locator("#client").wait_for(state="hidden")


def test_numbers_can_be_read_as_tables(page: Any) -> None:
    figure = chart(page, "clients")
    figure.get_by_text("Show as a table").click()
    rows = figure.locator("details tbody tr")
    rows.first.wait_for()  # a browser says that details are open in a task of its own, and then they are drawn
    assert rows.count() == len(CELL["clients"]["names"])
    link = rows.first.get_by_role("link", name="hospital 0")
    link.click()
    assert page.locator("#client h2").inner_text() == "hospital 0"
    page.keyboard.press("Escape")
    page.locator("#client").wait_for(state="hidden")
    figure.get_by_text("Show as a table").click()


def test_axe_finds_no_serious_fault(page: Any, faults: Callable[..., list[str]]) -> None:
    assert faults(page) == []
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert faults(page, rules=("color-contrast",)) == []
    page.get_by_role("button", name="Light colours").click()


def test_the_command_can_be_copied(page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == DATA["command"]
