import struct

import pytest
from matplotlib import get_backend, rcParams

from idiolect.core.errors import StoreError
from idiolect.report.figures import clients_figure, curves_figure, save
from idiolect.report.style import COLOURS, STYLES, Looks, blank


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
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


def test_the_same_numbers_the_same_picture(toy, cell, tmp_path):
    for name in ("a.png", "b.png"):
        save(clients_figure(toy, cell), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


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
