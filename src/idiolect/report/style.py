"""The style of figures: a colour for each method, a line style for each named model, one legend beside the panels."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from idiolect.core.files import atomic_write

# Okabe and Ito's colours, told apart by every common kind of colour blindness; yellow is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("", "o", "s", "^", "D", "v", "P")
STYLES: dict[str, Any] = {"personal": "-", "adapted": "-", "global": (0, (5, 2)), "local": (0, (1.2, 1.4))}
OTHER_STYLES: tuple[Any, ...] = ((0, (6, 1.5, 1, 1.5)), (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (3, 3)))
GREY = "#595959"
HIT, MISS = "#0072B2", "#D55E00"
DPI = 150


class Looks:
    """Colour and marker by method, line style by model: the same in every panel of a figure.

    lines: (method, model). Models without an entry in `STYLES` get unused line styles, the plainest first; so does
    `adapted` if a method also has `personal`. With a single method, colours distinguish its models if several of
    them are not in `STYLES`.
    """

    def __init__(self, lines: Sequence[tuple[str, str]]) -> None:
        self.methods = tuple(dict.fromkeys(method for method, _ in lines))
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

    def legend(self, figure: Figure, extra: Sequence[Artist] = ()) -> None:
        """Draw two short lists outside the panels: methods by colour, models by line style."""
        handles: list[Artist] = [_heading("method")]
        for name in self.methods:
            colour = GREY if self._by_model else self.colour(name, self.models[0])
            line = Line2D([], [], color=colour, linewidth=3, marker=self.marker(name), label=wrapped(name))
            handles.append(line)
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
        beside(figure, [*handles, *extra])


def beside(figure: Figure, handles: Sequence[Artist]) -> None:
    """Draw a legend right of the panels, with headings in bold."""
    legend = figure.legend(
        handles=list(handles), loc="outside right upper", frameon=False, fontsize=9, handlelength=2.4
    )
    for handle, label in zip(handles, legend.get_texts(), strict=True):
        if isinstance(handle, Line2D) and handle.get_linestyle() == "None" and handle.get_marker() == "None":
            label.set_fontweight("bold")


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


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG, atomically."""
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": "idiolect"})
