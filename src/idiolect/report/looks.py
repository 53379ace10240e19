"""How lines look: a colour for each method, a marker where colours do not suffice, dashes for each model."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.lines import Line2D

from idiolect.report.layout import COLOURS, DASHES, NOT_CHOSEN, dashes_of
from idiolect.report.legend import beside, heading, wrapped
from idiolect.report.style import GREY, PALE, REPORT, Drawing, Style, plain
from idiolect.report.view.parts import Part

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
