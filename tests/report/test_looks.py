"""Methods and models are told apart in every figure."""

from idiolect.report.layout import COLOURS, DASHES
from idiolect.report.looks import Looks
from idiolect.report.style import blank


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
