"""How figures look: sizes and fonts, colours and dashes, legends, captions, and how a figure is written."""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill, wrap
from types import MappingProxyType
from typing import Any, cast

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from idiolect.core.errors import unknown
from idiolect.core.files import atomic_write
from idiolect.report.layout import COLOURS, DASHES, MOST, NOT_CHOSEN, dashes_of
from idiolect.report.text import SPREAD
from idiolect.report.view.parts import Part

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
    in the picture. marked: every method has a marker, so that lines differ in grey too. `beside`: the legend is
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
    """A figure with its style and the lines of its caption, which are in the picture only if its style says so."""

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
    """Write a figure as PNG and, next to it, as SVG; return both paths."""
    png = Path(path)
    svg = png.with_suffix(".svg")
    for file, form in ((png, "png"), (svg, "svg")):
        write(figure, file, form)
    return [png, svg]


LONGEST = 120  # letters of a name
_COLUMNS = 6


def beside(
    figure: Drawing, handles: Sequence[Artist], stacks: Mapping[str, tuple[Artist, ...]] = MappingProxyType({})
) -> None:
    """Draw a legend outside the panels; the figure grows until it is high enough.

    stacks: further entries by names, one a line, each of several artists drawn over each other; a legend below the
    panels leaves them to the caption. Headings are bold; a legend below the panels has none.
    """
    if not figure.style.beside:
        below(figure, handles)
        return
    labels = [str(handle.get_label()) for handle in handles]
    labels += ["\n".join(wrapped(name) for name in names.split("\n")) for names in stacks]
    height = sum(0.21 + 0.15 * label.count("\n") for label in labels) + 0.3
    figure.set_figheight(max(figure.get_figheight(), height))
    legend = _legend(figure, [*handles, *stacks.values()], labels, loc="outside right upper", handlelength=2.4)
    for handle, label in zip(handles, legend.get_texts(), strict=False):
        if is_heading(handle):
            label.set_fontweight("bold")


def below(figure: Drawing, handles: Sequence[Artist]) -> None:
    """Draw a legend below the panels, for which the figure grows: as many columns as fit."""
    shown = [handle for handle in handles if not is_heading(handle)]
    labels = [str(handle.get_label()).replace("\n", " ") for handle in shown]
    if not shown:
        return
    marks = all(isinstance(handle, Line2D) and handle.get_linestyle() == "None" for handle in shown)
    spacing = {"columnspacing": 1.2, "handletextpad": 0.5, "labelspacing": 0.3}
    spacing |= {"borderaxespad": 0.5, "borderpad": 0.1, "handlelength": 1.0 if marks else 2.6}
    for columns in range(min(_COLUMNS, len(shown)), 0, -1):
        texts = [wrapped(label, 40 if columns > 1 else 60) for label in labels]
        legend = _legend(figure, shown, texts, loc="outside lower center", ncols=columns, **spacing)
        figure.draw_without_rendering()
        box = legend.get_window_extent()
        if box.width <= figure.bbox.width or columns == 1:
            figure.set_figheight(figure.get_figheight() + box.height / figure.dpi)
            return
        legend.remove()


def _legend(figure: Drawing, handles: Sequence[Any], labels: Sequence[str], **options: Any) -> Legend:
    return figure.legend(
        cast("list[Artist]", [*handles]),  # matplotlib's types do not know of tuples
        labels,
        frameon=False,
        fontsize=figure.style.small,
        handler_map={tuple: HandlerTuple(ndivide=1)},
        **options,
    )


def heading(title: str) -> Line2D:
    """A heading among a legend's entries; without a title, a gap."""
    return Line2D([], [], linestyle="none", marker="None", label=title or " ")


def is_heading(handle: Artist) -> bool:
    """Whether an entry is a heading."""
    return isinstance(handle, Line2D) and handle.get_linestyle() == "None" and handle.get_marker() == "None"


def wrapped(name: str, width: int = 26) -> str:
    """Wrap a long label over several lines, and cut one that no figure has room for."""
    short = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
    return fill(short, width, break_long_words=len(short) > 3 * width)


MARKERS = ("", "o", "s", "^", "D", "v", "P")
EVERY_MARKER = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p", "h")


def shown_names(parts: Sequence[Part]) -> dict[str, str]:
    """What figures call the methods of several parts; where two would be called alike, as tables call them."""
    names = {title: shown for part in parts for title, shown in part.names.items()}
    count = Counter(names.values())
    return {title: name if count[name] == 1 else title for title, name in names.items()}


class Looks:
    """Colour and marker by method, dashes by model: the same in every panel of a figure.

    lines: (method, model). With a single method, colours distinguish its models if several of them are not in
    `DASHES`. names: what the legend calls a method, if not by its title in tables. muted: methods
    that are nowhere in colour, one entry `grey` for all of them.
    """

    def __init__(
        self,
        lines: Sequence[tuple[str, str]],
        names: Mapping[str, str] | None = None,
        muted: Collection[str] = (),
        style: Style = REPORT,
        grey: str = NOT_CHOSEN,
    ) -> None:
        self._names, self._muted, self._grey, self.style = names or {}, bool(muted), grey, style
        self.methods = tuple(dict.fromkeys(method for method, _ in lines if method not in muted))
        self.models = tuple(dict.fromkeys(model for _, model in lines))
        self._dashes = {model: (0, dash) if dash else "-" for model, dash in dashes_of(lines).items()}
        both = any((method, "personal") in lines and model == "adapted" for method, model in lines)
        other_models = [m for m in self.models if m not in DASHES or (both and m == "adapted")]
        self._by_model = len(self.methods) == 1 and len(other_models) > 1

    def colour(self, method: str, model: str) -> str:
        """The line's colour; the palette repeats, then with markers."""
        return COLOURS[self.place(method, model) % len(COLOURS)]

    def place(self, method: str, model: str) -> int:
        """Which of the colours it is, counted on when the palette repeats."""
        return self.models.index(model) if self._by_model else self.methods.index(method)

    def marker(self, method: str) -> str:
        """The line's marker, which distinguishes methods of the same colour; none for the first methods.

        In a style in which every method is marked: a marker of its own.
        """
        place = self.methods.index(method)
        if self.style.marked:
            return EVERY_MARKER[place % len(EVERY_MARKER)]
        return MARKERS[place // len(COLOURS) % len(MARKERS)]

    def dashes(self, model: str) -> Any:
        """The model's dashes."""
        return self._dashes[model]

    def name(self, method: str, model: str = "") -> str:
        """What figures call a method, or one of its models: "FedAvg", "FedAvg global"; "Local" for Local's local."""
        name = self._names.get(method, method)
        return plain(name if not model or name.lower() == model else f"{name} {model}")

    def legend(self, figure: Drawing, stacks: Mapping[str, tuple[Artist, ...]] | None = None) -> None:
        """Draw short lists outside the panels: methods by colour, models by dashes, lines that coincide.

        stacks: text -> the coinciding lines, drawn over each other.
        """
        line, scale = self.style.line / REPORT.line, self.style.scale
        thick = (1.5 if self.style.marked else 3) * line
        handles: list[Artist] = [heading("chosen setting" if self._muted and self._grey == NOT_CHOSEN else "method")]
        for method in filter(None, self.methods):  # lines of no named method
            colour = GREY if self._by_model else self.colour(method, self.models[0])
            look: dict[str, Any] = {"marker": self.marker(method), "markersize": 6 * scale, "linewidth": thick}
            handles.append(Line2D([], [], color=colour, label=wrapped(self.name(method)), **look))
        if self._muted:
            handles.append(Line2D([], [], color=PALE, linewidth=0.9, label=self._grey))
        alike: dict[tuple[str, Any], list[str]] = {}
        for model in self.models:
            colour = self.colour(self.methods[0], model) if self._by_model else GREY
            alike.setdefault((colour, self.dashes(model)), []).append(model)
        if self.models == ("",):  # lines that are of no model
            alike = {}
        if alike:
            handles += [heading(""), heading("model")]
        for (colour, dashes), names in alike.items():
            label = wrapped(plain(", ".join(names)))
            handles.append(Line2D([], [], color=colour, linestyle=dashes, linewidth=1.8 * line, label=label))
        if stacks:
            handles += [heading(""), heading("coincide")]
        beside(figure, handles, stacks or {})


def seed_counts(parts: Iterable[Part]) -> list[int]:
    """The number of finished seeds of every method that is drawn and has any."""
    counts = [(title, counts.get("done", 0), part) for part in parts for title, counts in part.statuses.items()]
    return [done for title, done, part in counts if done and (not part.only[0] or title in part.only[0])]


def seeds_text(counts: Sequence[int], planned: int) -> str:
    """The number of seeds in words: "5 seeds"; "3 to 5 finished of 5 seeds" where methods differ."""
    low, high = min(counts, default=0), max(counts, default=0)
    if low == high == planned:
        return "one seed" if planned == 1 else f"{planned} seeds"
    return f"{low if low == high else f'{low} to {high}'} finished of {planned} seeds"


def coincide_caption(stacks: Iterable[str]) -> str:
    """Say which lines coincide; empty if none do. stacks: the names of each group of lines, one a line."""
    groups = [names.replace("\n", " = ") for names in stacks]
    return f"lines that coincide: {'; '.join(groups)}" if groups else ""


def spread_caption(marks: str, spread: str, counts: Sequence[int], planned: int) -> str:
    """Say what marks are over seeds, and what their spread, such as bands; a single seed has no spread."""
    seeds = seeds_text(counts, planned)
    if max(counts, default=0) < 2:
        return f"{marks}: {seeds}"
    none = ", none for a single seed" if min(counts) == 1 else ""
    return f"{marks}: mean of {seeds}; {spread}: ± {SPREAD}{none}"


def sentence(line: str) -> str:
    """A line of a caption as a sentence of plain text."""
    words = line.replace(r"\$", "$").strip()
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith(('.', '!', '?')) else '.'}"
