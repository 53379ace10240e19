"""The picture of a terminal: it shows what the command prints, in both schemes, and nothing of the machine."""

import html
import re

import pytest

from docs.make import cast


def words(svg: str) -> list[str]:
    """The words of a picture, without numbers."""
    lines = re.findall(r"<text [^>]*>([^<]*)</text>", svg)
    return re.findall(r"[A-Za-z]{2,}", html.unescape(" ".join(lines)))


def test_its_file_has_both_schemes_and_no_path_or_address() -> None:
    svg = cast.FILE.read_text(encoding="utf-8")
    assert cast.COMMAND.split()[2] in html.unescape(svg)
    assert not re.search(r"/(?:home|work|tmp|Users)/", svg)
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    light, dark = svg.split("@media (prefers-color-scheme: dark)")
    styles = dark.partition("</style>")[0]
    assert re.findall(r"advise-r\d+", light) == re.findall(r"advise-r\d+", styles)
    assert f".advise-terminal {{ fill: {cast.DARK.background_color.hex} }}" in styles
    assert svg.count('class="advise-terminal"') == 1


def test_a_picture_has_every_line_and_its_colours() -> None:
    svg = cast.picture("plain words\n\x1b[1mstrong\x1b[0m")
    assert words(svg)[-3:] == ["plain", "words", "strong"]
    assert "font-weight: bold" in svg


@pytest.mark.second
def test_it_shows_what_the_command_prints_today() -> None:
    assert words(cast.picture(cast.printed())) == words(cast.FILE.read_text(encoding="utf-8"))
