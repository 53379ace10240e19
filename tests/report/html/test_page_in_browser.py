"""The page in a browser: charts draw, the legend rules them, the table sorts, and nothing is asked of the network."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
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


PHONE, DESK = {"width": 390, "height": 800}, {"width": 1300, "height": 900}


def made(**changes: Any) -> dict[str, Any]:
    """Another page's data: `clients` of them, and changes of its only cell."""
    data = payload(clients=changes.pop("clients", 16), methods=6)
    data["cells"][0] |= changes
    return data


def test_one_model_per_method_until_all_are_asked_for(open_page: Callable[..., Any]) -> None:
    data = made()
    models = data["cells"][0]["models"]
    models[2]["default"] = models[3]["default"] = False
    page = open_page(data, viewport=DESK).page
    page.evaluate("idiolect.drawAll()")
    assert page.locator("#clients-0 select").input_value() == "m1"  # that of the headline
    lines = chart(page, "curves").locator("svg .curve path")
    assert lines.count() == len(models) - 2
    assert page.locator("#clients-0 .winners tbody tr").count() == len(models) - 3
    page.locator("#clients-0 select").select_option("m2")
    page.evaluate("idiolect.drawAll()")
    assert lines.count() == len(models) - 1
    page.get_by_label("all models").check()
    page.evaluate("idiolect.drawAll()")
    assert lines.count() == len(models)
    assert page.locator("#clients-0 .winners tbody tr").count() == len(models) - 1


def test_no_text_is_there_twice(page: Any) -> None:
    texts = page.eval_on_selector_all(
        "main p, main li, main dd, main h1, main h2, main h3, main summary, main caption, main figcaption",
        "all => all.filter(one => !one.closest('td, th, noscript, [hidden]'))"
        ".map(one => one.textContent.trim()).filter(text => text.length > 25)",
    )
    whole = [text for text in texts if not text.startswith(("Scroll the table", "Show as"))]
    assert [text for text in whole if whole.count(text) > 1] == []


def test_no_score_is_drawn_above_100_per_cent(open_page: Callable[..., Any]) -> None:
    data = made()
    clients, curves = data["cells"][0]["clients"], data["cells"][0]["curves"]["quantities"][0]
    clients["scores"] = {key: [1.0] * 8 + scores[8:] for key, scores in clients["scores"].items()}
    curves["domain"] = [0.5, 1.0]
    curves["series"][0] |= {"mean": [0.9] * 20 + [1.0], "high": [1.0] * 21}
    page = open_page(data).page
    page.evaluate("idiolect.drawAll()")
    for figure in (chart(page, "curves"), chart(page, "clients"), chart(page, "clients", 1)):
        ticks = figure.locator("svg").first.locator("text").all_text_contents()
        assert max(float(text.split()[0]) for text in ticks if re.fullmatch(r"\d+ %", text)) == 100
    top = page.eval_on_selector("#clients-0 figure svg", "svg => Math.min(...svg.scale('y').range)")
    points = page.eval_on_selector_all(
        POINT, "all => all.map(one => { const b = one.getBBox(), [, y] = (one.style.translate || '0 0').split(' ');"
        "const t = one.transform.baseVal.consolidate();"
        "return (t ? t.matrix.f : 0) + b.y + b.height / 2 + parseFloat(y || 0); })",
    )  # fmt: skip
    assert min(points) >= top - 1


def test_many_clients_are_hexagons_that_search_click_and_keys_reach(open_page: Callable[..., Any]) -> None:
    opened = open_page(made(clients=400))
    page = opened.page
    page.evaluate("idiolect.drawAll()")
    hexagons = page.locator("#clients-0 figure:nth-child(1) svg .hex")
    assert 10 < hexagons.count() < 300
    counts = [int(label.split()[0]) for label in hexagons.evaluate_all("all => all.map(one => one.ariaLabel)")]
    assert sum(counts) == 400
    find = page.get_by_role("combobox", name="Find a client by name")
    find.fill("hospital 7")
    assert page.locator("#clients-0 figure:nth-child(1) svg .sought").count() == 11  # 7, and 70 to 79
    find.press("Escape")
    first = hexagons.first
    first.scroll_into_view_if_needed()
    first.hover()
    assert re.match(r"(\d+ clients?: \d+ gain, \d+ lose|hospital)", page.locator("#tip").inner_text())
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator("#client h2").wait_for()
    page.keyboard.press("Escape")
    assert opened.log == []


def test_charts_that_show_nothing_are_left_out_with_a_sentence(open_page: Callable[..., Any]) -> None:
    data = made()
    data["cells"][0]["clients"]["train"] = [60] * 16
    page = open_page(data).page
    assert page.locator("#why-0 figure").count() == 2
    words = "Gain by size is not drawn: all clients have the same value, 60 (training samples)."
    assert words in page.locator("#why-0").inner_text()


def test_a_name_that_is_cut_keeps_its_end(page: Any) -> None:
    cut = "([text, most]) => idiolect.middle(text, most)"
    assert page.evaluate(cut, ["FedAvg + fine-tuning with a label, adapted", 24]) == "FedAvg + fine-…, adapted"
    assert page.evaluate(cut, ["x" * 40, 9]) == "xxxx…xxxx"


def test_both_losses_are_in_one_panel_and_unfinished_curves_say_so(open_page: Callable[..., Any]) -> None:
    data = made()
    curves = data["cells"][0]["curves"]
    curves["quantities"].append({**curves["quantities"][1], "kind": "test loss", "title": "test loss"})
    page = open_page(data, viewport=DESK).page
    page.evaluate("idiolect.drawAll()")
    assert page.locator("#curves-0 figure").count() == 2
    score, loss = chart(page, "curves"), chart(page, "curves", 1)
    assert loss.locator("h3").inner_text() == "Test loss and training loss"
    assert loss.locator("svg .curve path").count() == 2 * len(curves["quantities"][1]["series"])
    assert "not converged" in score.locator(".note").inner_text()
    assert [text for text in score.locator(".ends text").all_text_contents() if "↗" in text] == [
        "\u2068FedPer, personal\u2069 ↗"
    ]
    assert "not converged" not in loss.locator(".note").inner_text()


def test_what_is_inconclusive_is_grey(page: Any) -> None:
    colours = page.eval_on_selector_all(
        ".winners .level, svg .layer-0", "all => all.map(one => getComputedStyle(one).backgroundColor)"
    )
    channels = [[int(number) for number in re.findall(r"\d+", colour)[:3]] for colour in colours]
    assert all(max(three) - min(three) < 10 for three in channels)
    strokes = page.eval_on_selector_all("svg .layer-0", "all => all.map(one => one.getAttribute('stroke'))")
    assert {*strokes} <= {"var(--same)"}


@pytest.mark.parametrize(
    "viewport", [pytest.param(PHONE, id="phone"), pytest.param(DESK, id="desktop", marks=pytest.mark.second)]
)
def test_pointer_keys_search_and_sorting_work_at_both_widths(open_page: Callable[..., Any], viewport: Any) -> None:
    opened = open_page(DATA, viewport=viewport, has_touch=viewport is PHONE)
    page = opened.page
    page.evaluate("idiolect.drawAll()")
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    hint = page.locator("#table-0 .hint").first
    assert hint.is_visible() is (viewport is PHONE)
    table = page.locator(".main-table").first
    assert table.evaluate("one => one.scrollWidth > one.clientWidth + 1") is (viewport is PHONE)
    page.locator(".main-table thead th").nth(1).get_by_role("button").click()
    assert page.locator(".main-table thead th").nth(1).get_attribute("aria-sort") == "descending"
    for row in page.locator(".winners tbody tr").all():
        gain, same, lose, clients = map(int, row.locator("td.number").all_inner_texts())
        assert gain + same + lose == clients == 16
    chip = page.locator(".fact").first
    chip.locator("summary").focus()
    page.keyboard.press("Enter")
    assert DATA["chips"][0]["text"] in chip.inner_text()
    page.get_by_role("combobox", name="Find a client by name").fill("hospital 3")
    page.keyboard.press("Enter")
    page.locator("#client h2").wait_for()
    assert page.locator("#client h2").inner_text() == "hospital 3"
    page.keyboard.press("ArrowRight")
    page.locator("#client h2", has_text="hospital 4").wait_for()
    page.keyboard.press("Escape")
    page.locator("#client").wait_for(state="hidden")
    dot = page.locator(f"{POINT}[data-client='7']")
    dot.scroll_into_view_if_needed()
    dot.hover()
    assert "hospital 7" in page.locator("#tip").inner_text()
    dot.click()
    page.locator("#client h2").wait_for()
    assert opened.log == []


def test_charts_that_are_drawn_late_move_nothing(open_page: Callable[..., Any]) -> None:
    page = open_page(DATA, viewport=DESK).page
    moved = page.evaluate(
        """async () => {
          let sum = 0;
          new PerformanceObserver((list) => list.getEntries().forEach((one) => (sum += one.value)))
            .observe({ type: "layout-shift", buffered: true });
          for (let y = 0; y < document.body.scrollHeight; y += 300) {
            scrollTo({ top: y, behavior: "instant" });
            await new Promise((done) => setTimeout(done, 60));
          }
          return sum;
        }"""
    )
    assert moved < 0.1


def test_headings_ids_names_and_focus_are_in_order(open_page: Callable[..., Any]) -> None:
    page = open_page(DATA).page
    page.evaluate("idiolect.drawAll()")
    levels = page.eval_on_selector_all("main h1, main h2, main h3", "all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert len(ids) == len({*ids})
    assert page.evaluate("document.documentElement.lang") == "en"
    unnamed = "all => all.filter(one => !(one.ariaLabel || one.labels?.length || one.textContent.trim())).length"
    assert page.eval_on_selector_all("main button, main input, main select, main svg[role]", unnamed) == 0
    for scheme in ("Dark colours", "Light colours"):
        page.keyboard.press("Tab")
        outline = "getComputedStyle(document.activeElement)"
        assert page.evaluate(f"{outline}.outlineStyle + ' ' + {outline}.outlineWidth") == "solid 2px"
        page.get_by_role("button", name=scheme).click()
