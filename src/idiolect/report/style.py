"""The style of figures, in a report and in a paper: sizes, fonts, one caption, and how a figure is written."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from idiolect.core.errors import unknown
from idiolect.core.files import atomic_write
from idiolect.report.layout import MOST

GREY, PALE = "#595959", "#a6a6a6"
HIT, MISS = "#0072B2", "#D55E00"
DPI = 150
# Letters as paths: they look the same where the font is missing, and texts that were laid out never overlap.
SVG: Any = {"svg.fonttype": "path", "svg.hashsalt": "idiolect"}
# Letters as TrueType: what journals ask for, and a reader can search and copy.
EMBEDDED: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}
# Fonts that come with matplotlib: the same figure on every machine. STIX looks like Times.
FONTS: dict[str, Any] = {
    "sans": {"font.family": ["DejaVu Sans"], "mathtext.fontset": "dejavusans"},
    "serif": {"font.family": ["STIXGeneral", "DejaVu Serif"], "mathtext.fontset": "stix"},
}
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "idiolect"},
    "svg": {"Creator": "idiolect", "Date": None},
    "pdf": {"Creator": "idiolect", "CreationDate": None},
}


@dataclass(frozen=True)
class Style:
    """How a figure is drawn. Sizes are in points: label, small (ticks, legend), note (caption), line (its width).

    width: of the figure in inches; each figure has its own if there is none. titled: with its title and its caption
    in the picture. marked: every method has a marker, so that lines are told apart in grey too. beside: the legend is
    right of the panels, else below. scale: of marks. most: lines in colour that one panel can have. settings:
    matplotlib's, for what has no name here.
    """

    label: float = 10
    small: float = 9
    note: float = 8
    title: float = 11
    line: float = 1.7
    scale: float = 1.0
    width: float | None = None
    dpi: int = DPI
    most: int = MOST
    titled: bool = True
    marked: bool = False
    beside: bool = True
    settings: dict[str, Any] = field(default_factory=dict[str, Any])

    @contextmanager
    def applied(self) -> Generator[None]:
        """Draw and write inside this block; matplotlib's own settings are as before after it."""
        settings: Any = self.settings
        with rc_context(settings):
            yield


REPORT = Style()


def paper(width: float, font: str = "sans") -> Style:
    """The style for a column `width` inches wide: no title, text of 7 and 8 points, thin lines, markers.

    Raises `ConfigError` for an unknown font.
    """
    if font not in FONTS:
        raise unknown("font", font, FONTS)
    thin = {f"{axis}tick.major.{part}": size for axis in "xy" for part, size in (("width", 0.6), ("size", 2.5))}
    thin |= {f"{axis}tick.minor.{part}": size for axis in "xy" for part, size in (("width", 0.4), ("size", 1.5))}
    settings = {**FONTS[font], **thin, "axes.linewidth": 0.6, "axes.labelpad": 2.5, "font.size": 8}
    sizes: dict[str, Any] = {"label": 8, "small": 7, "note": 7, "title": 8, "line": 1.0, "scale": 0.65, "most": 12}
    return Style(width=width, dpi=600, titled=False, marked=True, beside=False, settings=settings, **sizes)


class Drawing(Figure):
    """A figure with its style and the lines of its caption, which stand in the picture only if its style says so."""

    style: Style = REPORT
    told: tuple[str, ...] = ()


def blank(width: float, height: float, style: Style = REPORT) -> Drawing:
    """Create an empty figure, without pyplot and its global state; a style with a width shrinks both sides."""
    shrunk = 1.0 if style.width is None else style.width / width
    figure = Drawing(figsize=(width * shrunk, height * shrunk), layout="constrained", dpi=style.dpi)
    figure.style = style
    if style.width is not None:  # to the edge of the column
        engine: Any = figure.get_layout_engine()
        engine.set(w_pad=0.02, h_pad=0.03)
    return figure


def high(inches: float, width: float, style: Style, least: float) -> float:
    """The height of a row for `blank`, so that it is at least `least` inches in a column that shrinks the figure."""
    return inches if style.width is None else max(inches, least * width / style.width)


def tidy(axes: Axes, style: Style = REPORT) -> None:
    """Apply the common style to axes: a light grid, no box, readable tick labels."""
    axes.grid(color="#dddddd", linewidth=0.6 * style.line / REPORT.line)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=style.small)
    axes.margins(x=0.02)


def headline(figure: Drawing, axes: Axes, text: str) -> None:
    """Write a title above axes, if the figure's style has titles."""
    if figure.style.titled:
        axes.set_title(text, fontsize=figure.style.title, fontweight="bold", loc="left")


def caption(figure: Drawing, lines: Sequence[str]) -> None:
    """Keep the caption and, if the style has titles, write it small and grey under all else; call it last."""
    figure.told = tuple(line for line in lines if line)
    if not figure.style.titled:
        return
    width = int((figure.get_figwidth() - 0.2) / 0.062)  # letters of this size
    rows = [row for line in figure.told for row in wrap(line, width)]
    figure.set_figheight(figure.get_figheight() + 0.15 * len(rows) + 0.05)
    figure.supxlabel("\n".join(rows), x=0.01, ha="left", fontsize=figure.style.note, color=GREY)


def plain(name: str) -> str:
    """A name as text of a figure: a dollar is a dollar, not the start of a formula, and a line is a line."""
    return " ".join(name.split()).replace("$", r"\$") if name else name


def stripes(place: int, of: int, width: float) -> tuple[float, tuple[float, float]]:
    """The dashes of one of several lines drawn over each other, each to be seen between the others' dashes.

    place: 1 for the second line; the first lies below, without these dashes. width: of the line, in points.
    """
    dash = min(7.0, 20.0 / of) / width  # in line widths; a legend shows 21 points of a line
    return dash * (of - place), (dash, dash * (of - 1))


def write(figure: Figure, path: str | Path, form: str, style: Style = REPORT) -> None:
    """Write a figure as "pdf", "svg" or "png", atomically. The same figure gives the same bytes: no file has a date.

    Raises `StoreError` if it cannot be written.
    """
    settings: Any = {**style.settings, **SVG, **EMBEDDED}
    with rc_context(settings), atomic_write(path, shared=True) as file:
        figure.savefig(file, format=form, dpi=style.dpi, metadata=METADATA[form])


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Write a figure as PNG and, beside it, as SVG; return both paths."""
    png = Path(path)
    svg = png.with_suffix(".svg")
    for file, form in ((png, "png"), (svg, "svg")):
        write(figure, file, form)
    return [png, svg]
