import struct
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.lines import Line2D

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.figures import curves_figure
from idiolect.report.legend import beside
from idiolect.report.strips import strips_figure
from idiolect.report.style import blank, caption, paper, plain, save, stripes, write
from idiolect.report.view.from_store import part_of


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


@pytest.mark.parametrize(("form", "font"), [("pdf", "sans"), ("pdf", "serif"), ("svg", "sans"), ("png", "serif")])
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
