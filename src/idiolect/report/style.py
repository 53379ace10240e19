"""The style of figures: a colour for each method, a line style for each model, one legend, one caption."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from textwrap import fill, wrap
from types import MappingProxyType
from typing import Any, cast

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from idiolect.core.files import atomic_write

# Okabe and Ito's colours, told apart by every common kind of colour blindness; yellow is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("", "o", "s", "^", "D", "v", "P")
STYLES: dict[str, Any] = {"personal": "-", "adapted": "-", "global": (0, (5, 2)), "local": (0, (1.2, 1.4))}
OTHER_STYLES: tuple[Any, ...] = ((0, (6, 1.5, 1, 1.5)), (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (3, 3)))
GREY, PALE = "#595959", "#a6a6a6"
HIT, MISS = "#0072B2", "#D55E00"
NOT_CHOSEN = "not chosen"
DPI = 150
# Letters as paths: they look the same where the font is missing, and texts that were laid out never overlap.
SVG: Any = {"svg.fonttype": "path", "svg.hashsalt": "idiolect"}


class Looks:
    """Colour and marker by method, line style by model: the same in every panel of a figure.

    lines: (method, model). Models without an entry in `STYLES` get unused line styles, the plainest first; so does
    `adapted` if a method also has `personal`. With a single method, colours distinguish its models if several of
    them are not in `STYLES`. names: what the legend calls a method, if not by its title in tables. muted: methods
    that are nowhere in colour (settings that were not chosen), one entry for all of them.
    """

    def __init__(
        self, lines: Sequence[tuple[str, str]], names: Mapping[str, str] | None = None, muted: Collection[str] = ()
    ) -> None:
        self._names, self._muted = names or {}, bool(muted)
        self.methods = tuple(dict.fromkeys(method for method, _ in lines if method not in muted))
        self.models = tuple(dict.fromkeys(model for _, model in lines))
        both = any((method, "personal") in lines and model == "adapted" for method, model in lines)
        fixed_styles = {
            name: style for name, style in STYLES.items() if name in self.models and not (both and name == "adapted")
        }
        other_models = [model for model in self.models if model not in fixed_styles]
        free = [style for style in dict.fromkeys(STYLES.values()) if style not in fixed_styles.values()] + list(
            OTHER_STYLES
        )
        self._styles = fixed_styles | {model: free[i % len(free)] for i, model in enumerate(other_models)}
        self._by_model = len(self.methods) == 1 and len(other_models) > 1

    def colour(self, method: str, model: str) -> str:
        """The line's colour; the palette repeats, then with markers."""
        place = self.models.index(model) if self._by_model else self.methods.index(method)
        return COLOURS[place % len(COLOURS)]

    def marker(self, method: str) -> str:
        """The line's marker, which distinguishes methods of the same colour; none for the first methods."""
        return MARKERS[self.methods.index(method) // len(COLOURS) % len(MARKERS)]

    def style(self, model: str) -> Any:
        """The model's line style."""
        return self._styles[model]

    def name(self, method: str, model: str = "") -> str:
        """What figures call a method, or one of its models: "FedAvg", "FedAvg global"; "Local" for Local's local."""
        name = self._names.get(method, method)
        return name if not model or name.lower() == model else f"{name} {model}"

    def legend(self, figure: Figure, stacks: Mapping[str, tuple[Artist, ...]] | None = None) -> None:
        """Draw short lists outside the panels: methods by colour, models by line style, lines that coincide.

        stacks: text -> the coinciding lines, drawn over each other.
        """
        handles: list[Artist] = [_heading("chosen setting" if self._muted else "method")]
        for method in self.methods:
            colour = GREY if self._by_model else self.colour(method, self.models[0])
            label = wrapped(self.name(method))
            handles.append(Line2D([], [], color=colour, linewidth=3, marker=self.marker(method), label=label))
        if self._muted:
            handles.append(Line2D([], [], color=PALE, linewidth=0.9, label=NOT_CHOSEN))
        alike: dict[tuple[str, Any], list[str]] = {}
        for model in self.models:
            colour = self.colour(self.methods[0], model) if self._by_model else GREY
            alike.setdefault((colour, self.style(model)), []).append(model)
        if alike:
            handles += [_heading(""), _heading("model")]
        for (colour, style), names in alike.items():
            handles.append(
                Line2D([], [], color=colour, linestyle=style, linewidth=1.8, label=wrapped(", ".join(names)))
            )
        if stacks:
            handles += [_heading(""), _heading("coincide")]
        beside(figure, handles, stacks or {})


def beside(
    figure: Figure, handles: Sequence[Artist], stacks: Mapping[str, tuple[Artist, ...]] = MappingProxyType({})
) -> None:
    """Draw a legend right of the panels, with headings in bold; the figure grows until it is high enough.

    stacks: further entries by text, each of several artists drawn over each other.
    """
    labels = [str(handle.get_label()) for handle in handles] + list(stacks)
    height = sum(0.21 + 0.15 * label.count("\n") for label in labels) + 0.3
    figure.set_figheight(max(figure.get_figheight(), height))
    legend = figure.legend(
        cast("list[Artist]", [*handles, *stacks.values()]),  # matplotlib's types do not know of tuples
        labels,
        loc="outside right upper",
        frameon=False,
        fontsize=9,
        handlelength=2.4,
        handler_map={tuple: HandlerTuple(ndivide=1)},
    )
    for handle, label in zip(handles, legend.get_texts(), strict=False):
        if isinstance(handle, Line2D) and handle.get_linestyle() == "None" and handle.get_marker() == "None":
            label.set_fontweight("bold")


def caption(figure: Figure, lines: Sequence[str]) -> None:
    """Write a small grey caption under everything else, for which the figure grows; call it last."""
    width = int((figure.get_figwidth() - 0.2) / 0.062)  # letters of this size
    rows = [row for line in lines if line for row in wrap(line, width)]
    figure.set_figheight(figure.get_figheight() + 0.15 * len(rows) + 0.05)
    figure.supxlabel("\n".join(rows), x=0.01, ha="left", fontsize=8, color=GREY)


def stripes(place: int, of: int, width: float) -> tuple[float, tuple[float, float]]:
    """The dashes of one of several lines drawn over each other, each to be seen between the others' dashes.

    place: 1 for the second line; the first lies below, without these dashes. width: of the line, in points.
    """
    dash = min(7.0, 20.0 / of) / width  # in line widths; a legend shows 21 points of a line
    return dash * (of - place), (dash, dash * (of - 1))


def _heading(title: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker="None", label=title or " ")


def wrapped(name: str) -> str:
    """Wrap a long label over several lines."""
    return fill(name, 26, break_long_words=False)


def blank(width: float, height: float) -> Figure:
    """Create an empty figure, without pyplot and its global state."""
    return Figure(figsize=(width, height), layout="constrained", dpi=DPI)


def tidy(axes: Axes) -> None:
    """Apply the common style to axes: a light grid, no box, readable tick labels."""
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=9)
    axes.margins(x=0.02)


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Write a figure as PNG and, beside it, as SVG, each atomically; return both paths.

    The same figure gives the same bytes: neither file has a date, and the names inside the SVG are not random.
    """
    png = Path(path)
    svg = png.with_suffix(".svg")
    with atomic_write(png) as file:
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": "idiolect"})
    with rc_context(SVG), atomic_write(svg) as file:
        figure.savefig(file, format="svg", dpi=DPI, metadata={"Creator": "idiolect", "Date": None})
    return [png, svg]
