import struct
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import get_backend, rcParams
from matplotlib.lines import Line2D

from idiolect.core.errors import StoreError
from idiolect.report.figures import clients_figure, curves_figure, save
from idiolect.report.style import COLOURS, STYLES, Looks, beside, blank, caption, stripes


def size(path):
    """Width and height from a PNG's header."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data[-8:-4] == b"IEND"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize(("draw", "width"), [(curves_figure, 1590), (clients_figure, 1290)])
def test_saved_as_png(toy, cell, tmp_path, draw, width):
    save(draw(toy, cell), tmp_path / "a.png")
    assert size(tmp_path / "a.png")[0] == width
    assert size(tmp_path / "a.png")[1] > 300
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "a.svg"]


@pytest.mark.parametrize("draw", [curves_figure, clients_figure])
def test_the_same_numbers_the_same_picture(toy, cell, tmp_path, draw):
    first, second = (save(draw(toy, cell), tmp_path / name) for name in ("a.b.png", "c.png"))
    assert [path.name for path in (*first, *second)] == ["a.b.png", "a.b.svg", "c.png", "c.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_svg_is_the_same_picture_without_a_date_or_a_font(toy, cell, tmp_path):
    png, svg = save(curves_figure(toy, cell), tmp_path / "a.png")
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
        save(clients_figure(toy, cell), tmp_path / "nowhere" / "a.png")


def test_global_state_is_left_alone(toy, cell, tmp_path):
    before, backend = dict(rcParams), get_backend(auto_select=False)
    save(curves_figure(toy, cell), tmp_path / "a.png")
    assert dict(rcParams) == before
    assert get_backend(auto_select=False) == backend


def test_unknown_models_get_styles_of_their_own():
    looks = Looks([("a", "personal"), ("a", "first"), ("a", "second")])
    assert len({str(looks.style(m)) for m in looks.models}) == 3
    plain = Looks([("a", "first"), ("b", "second")])
    assert [plain.style(m) for m in plain.models] == ["-", STYLES["global"]]


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
    assert len({str(looks.style(model)) for model in looks.models}) == 3


def test_many_models_of_one_method_are_told_apart():
    """mmFL on three modalities has eight; with two methods the colours are the methods'."""
    models = ["global", "personal", *(f"{kind}{m}" for m in "abc" for kind in ("", "personal "))]
    alone, two = (
        Looks([(m, model) for m in methods for model in models]) for methods in (["mmfl"], ["mmfl", "fedavg"])
    )
    seen = {(alone.colour("mmfl", model), str(alone.style(model))) for model in models}
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
