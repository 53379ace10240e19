"""Methods and models are told apart in every figure."""

import struct
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.lines import Line2D

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.client_figures import strips_figure
from idiolect.report.figures import curves_figure
from idiolect.report.layout import COLOURS, DASHES
from idiolect.report.style import (
    LONGEST,
    Looks,
    beside,
    blank,
    caption,
    coincide_caption,
    heading,
    paper,
    plain,
    save,
    seed_counts,
    seeds_text,
    sentence,
    spread_caption,
    stripes,
    wrapped,
    write,
)
from idiolect.report.view.from_store import part_of
from tests.tiers import second


def size(path):
    """Width and height from a PNG's header."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data[-8:-4] == b"IEND"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize(("draw", "width"), [(curves_figure, 1590), (strips_figure, 1290)])
def test_saved_as_png(toy, cell, tmp_path, draw, width):
    save(draw(part_of(toy, cell)), tmp_path / "a.png")
    assert size(tmp_path / "a.png")[0] == width
    assert size(tmp_path / "a.png")[1] > 300
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "a.svg"]


@pytest.mark.parametrize("draw", [curves_figure, strips_figure])
def test_the_same_numbers_the_same_picture(toy, cell, tmp_path, draw):
    first, second = (save(draw(part_of(toy, cell)), tmp_path / name) for name in ("a.b.png", "c.png"))
    assert [path.name for path in (*first, *second)] == ["a.b.png", "a.b.svg", "c.png", "c.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_svg_is_the_same_picture_without_a_date_or_a_font(toy, cell, tmp_path):
    png, svg = save(curves_figure(part_of(toy, cell)), tmp_path / "a.png")
    root = ElementTree.parse(svg).getroot()
    width, height = (float(root.attrib[side].removesuffix("pt")) for side in ("width", "height"))
    assert size(png) == pytest.approx((width * 150 / 72, height * 150 / 72), abs=1)
    said = svg.read_text()
    assert "date>" not in said
    assert "<text" not in said  # letters are paths: the same without the font
    assert "<!-- FedAvg -->" in said


def test_captions_are_inside_the_figure_and_clear_of_all_else():
    figure = blank(6, 3)
    axes = figure.subplots()
    axes.set_xlabel("round")
    beside(figure, [Line2D([], [], label=f"entry {i}\nof two lines") for i in range(8)])
    caption(figure, ["one " * 60, "", "two"])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    text = next(t for t in figure.texts if t.get_text().endswith("two"))
    assert text.get_text().count("\n") == 3
    box = text.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert 0 <= box.y0 < box.y1 <= axes.xaxis.label.get_window_extent().y0
    assert legend.get_window_extent().y0 >= box.y1


@pytest.mark.parametrize("of", [2, 3, 5])
def test_of_coinciding_lines_each_is_seen_between_the_others(of):
    places = np.arange(0, 60, 0.01) + 0.005  # points along the line
    seen = np.zeros((of, len(places)), bool)
    for place in range(1, of):
        width = 1.7 * (1 + place % 2)
        offset, (on, off) = stripes(place, of, width)
        seen[place] = (places / width + offset) % (on + off) < on
    seen[0] = ~seen[1:].any(axis=0)
    assert (seen.sum(axis=0) == 1).all()
    assert seen.mean(axis=1) == pytest.approx(1 / of, abs=0.1)


def test_a_folder_that_is_not_there(toy, cell, tmp_path):
    with pytest.raises(StoreError, match="cannot write"):
        save(strips_figure(part_of(toy, cell)), tmp_path / "nowhere" / "a.png")


def test_global_state_is_left_alone(toy, cell, tmp_path):
    before, backend = dict(rcParams), dict.__getitem__(rcParams, "backend")  # without choosing one
    save(curves_figure(part_of(toy, cell)), tmp_path / "a.png")
    assert dict(rcParams) == before
    assert dict.__getitem__(rcParams, "backend") == backend


@pytest.mark.parametrize(
    ("form", "font"), [("pdf", "sans"), second("pdf", "serif"), ("svg", "sans"), second("png", "serif")]
)
def test_a_papers_figure_is_as_wide_as_its_column_and_the_same_again(toy, cell, tmp_path, form, font):
    style = paper(3.25, font)
    for name in ("a", "b"):
        with style.applied():
            write(curves_figure(part_of(toy, cell), style=style), tmp_path / name, form, style)
    first = (tmp_path / "a").read_bytes()
    assert first == (tmp_path / "b").read_bytes()
    if form == "pdf":
        assert f"MediaBox [ 0 0 {3.25 * 72:g} ".encode() in first
        assert b"/FontFile2" in first  # TrueType, embedded
        assert b"/Subtype /Type3" not in first
        assert b"CreationDate" not in first
    if form == "svg":
        assert ElementTree.fromstring(first).attrib["width"] == "234pt"
        assert b"date>" not in first


def test_a_paper_has_no_title_and_its_caption_is_kept(toy, cell):
    style = paper(3.25)
    with style.applied():
        figure = curves_figure(part_of(toy, cell), style=style)
    assert (figure.get_suptitle(), figure.get_supxlabel()) == ("", "")
    assert figure.told[0].startswith("lines: mean of 1 to 2 finished of 2 seeds")
    assert [line.get_marker() for line in figure.axes[0].lines] == ["o", "s"]  # told apart without colours
    sizes = {t.get_fontsize() for axes in figure.axes for t in (*axes.get_xticklabels(), axes.xaxis.label)}
    assert {7, 8} >= sizes
    assert {t.get_fontsize() for t in figure.legends[0].get_texts()} == {7}
    with pytest.raises(ConfigError, match="unknown font 'comic'"):
        paper(3.25, "comic")


def test_a_dollar_is_no_formula():
    figure = blank(3, 3)
    figure.subplots().set_title(plain("$\\frac{ and $\nmore"))
    figure.draw_without_rendering()
    assert plain("") == ""


@pytest.mark.parametrize("width", [3.25, second(6.75)])
def test_a_papers_legend_is_below_and_inside_the_column(width):
    figure = blank(6, 4, paper(width))
    axes = figure.subplots()
    axes.set_xlabel("round")
    before = figure.get_figheight()
    beside(
        figure, [heading("method"), *(Line2D([], [], label=f"a rather long method, number {i}") for i in range(9))]
    )
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert figure.get_figwidth() == width
    assert figure.get_figheight() > before
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert 0 <= box.y0 < box.y1 <= axes.xaxis.label.get_window_extent().y0
    assert [text.get_text().split(",")[0] for text in figure.legends[0].get_texts()] == ["a rather long method"] * 9


def test_coinciding_lines_are_wrapped_name_by_name():
    figure = blank(6, 4)
    beside(figure, [heading("coincide")], {"one long name of a method\nanother": (Line2D([], []), Line2D([], []))})
    assert figure.legends[0].get_texts()[1].get_text() == "one long name of a method\nanother"


def test_a_name_that_no_figure_has_room_for_is_cut():
    assert wrapped("x " * 5000).count("x") <= LONGEST
    assert len(wrapped("y" * 10_000)) < 2 * LONGEST


def test_unknown_models_get_styles_of_their_own():
    looks = Looks([("a", "personal"), ("a", "first"), ("a", "second")])
    assert len({str(looks.dashes(m)) for m in looks.models}) == 3
    plain = Looks([("a", "first"), ("b", "second")])
    assert [plain.dashes(m) for m in plain.models] == ["-", (0, DASHES["global"])]


def test_palette_starts_again_with_markers():
    looks = Looks([(str(i), "global") for i in range(len(COLOURS) + 1)])
    last = str(len(COLOURS))
    assert looks.colour(last, "global") == looks.colour("0", "global")
    assert looks.marker(last) != looks.marker("0")


def test_legend_joins_models_with_one_style():
    figure = blank(4, 3)
    figure.subplots()
    Looks([("a", "personal"), ("b", "adapted"), ("b", "global")]).legend(figure)
    assert [t.get_text() for t in figure.legends[0].get_texts()][-2:] == ["personal, adapted", "global"]


def test_adapted_and_personal_of_one_method_are_told_apart():
    looks = Looks([("a", "personal"), ("a", "adapted"), ("b", "global")])
    assert len({str(looks.dashes(model)) for model in looks.models}) == 3


def test_many_models_of_one_method_are_told_apart():
    """mmFL on three modalities has eight; with two methods the colours are the methods'."""
    models = ["global", "personal", *(f"{kind}{m}" for m in "abc" for kind in ("", "personal "))]
    alone, two = (
        Looks([(m, model) for m in methods for model in models]) for methods in (["mmfl"], ["mmfl", "fedavg"])
    )
    seen = {(alone.colour("mmfl", model), str(alone.dashes(model))) for model in models}
    assert len(seen) == len(models)
    assert {two.colour("mmfl", model) for model in models} == {COLOURS[0]}
    figure = blank(4, 3)
    alone.legend(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()][4:] == models


def test_names_and_settings_that_were_not_chosen():
    looks = Looks([("a", "global"), ("b", "global"), ("b", "own")], {"b": "Bee"}, muted={"a"})
    assert looks.methods == ("b",)
    assert [looks.name("b"), looks.name("b", "global"), looks.name("b", "bee")] == ["Bee", "Bee global", "Bee"]
    figure = blank(4, 3)
    looks.legend(figure)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["chosen setting", "Bee", "not chosen", " ", "model", "global", "own"]


@pytest.mark.parametrize(
    ("counts", "planned", "said"),
    [
        ([1, 1], 1, "one seed"),
        ([5, 5], 5, "5 seeds"),
        ([3, 5, 4], 5, "3 to 5 finished of 5 seeds"),
        ([3, 3], 5, "3 finished of 5 seeds"),
        ([1], 5, "1 finished of 5 seeds"),
        ([], 5, "0 finished of 5 seeds"),
    ],
)
def test_seeds(counts, planned, said):
    assert seeds_text(counts, planned) == said


def test_spread():
    spread = "bars: ± half of the 95 % interval over seeds (Student's t)"
    assert spread_caption("points", "bars", [4, 4], 4) == f"points: mean of 4 seeds; {spread}"
    assert spread_caption("points", "bars", [1, 4], 4) == (
        f"points: mean of 1 to 4 finished of 4 seeds; {spread}, none for a single seed"
    )
    assert spread_caption("points", "bars", [1, 1], 4) == "points: 1 finished of 4 seeds"


def test_only_finished_seeds_count(toy, cell):
    """FedAvg diverged in one of two seeds, pFedMe was not run."""
    assert seed_counts([part_of(toy, cell)]) == [1, 2]


def test_sentences_and_lines_that_coincide():
    assert sentence(r"lines: \$5") == "Lines: $5."
    assert sentence("Done!") == "Done!"
    assert coincide_caption(["a x\nb y", "c\nd"]) == "lines that coincide: a x = b y; c = d"
    assert coincide_caption([]) == ""
