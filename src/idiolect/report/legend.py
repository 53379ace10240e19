"""Legends: right of the panels with headings, or below them in as many columns as the figure has room for."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from types import MappingProxyType
from typing import Any, cast

from matplotlib.artist import Artist
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from idiolect.report.style import Drawing

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
