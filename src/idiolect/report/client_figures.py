"""Figures of clients: every client's score under every method, and its gain against its number of samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D

from idiolect.core.errors import ConfigError
from idiolect.report.layout import NOT_CHOSEN
from idiolect.report.style import (
    GREY,
    HIT,
    MISS,
    PALE,
    REPORT,
    Drawing,
    Style,
    beside,
    blank,
    caption,
    headline,
    plain,
    seeds_text,
    tidy,
    wrapped,
)
from idiolect.report.view.parts import MEAN, WORST, Key, Part

_BINS = 70  # dots closer than this share of the axis are drawn next to each other
_MANY = 2000  # above so many marks they are pixels in the SVG file, which would else be megabytes
_LOOSE = 9  # strips, above which each has less room
_MOST = 24  # strips; more are left out, the worst first
_FAR = 0.01  # of the marks may lie beyond the axis,
_CROWDED = 1 / 3  # if the others need less than this share of it


@dataclass(frozen=True)
class Strip:
    """One method's values, one for each client and finished seed, and whether each is worse than with Local."""

    scores: np.ndarray
    hurt: np.ndarray


def strips_figure(part: Part, style: Style = REPORT) -> Drawing:
    """Draw one strip for each named model: the test score of every client, in every seed.

    Crosses are clients worse off than with Local training in the same seed, where Local was run. A bar marks the
    mean over clients, a triangle the mean of the worst tenth. Settings that were not chosen are grey, and left out
    where strips are many. Marks that would press all others together are arrows at the end of the axis.
    """
    metric = part.metric
    unit = metric.unit
    strips = [(key, marks) for key in part.drawn() if (marks := strip(part, key)) is not None]
    strips, left_out = _fewer(part, strips)
    roomy = len(strips) <= _LOOSE
    row = (0.75 if roomy else 0.38) if style.width is None else (0.3 if roomy else 0.16) * 8.6 / style.width
    figure = blank(8.6, max(2.6, 1.2 + row * len(strips)), style)
    axes = figure.subplots()
    tidy(axes, style)
    axes.grid(visible=False, axis="y")
    headline(figure, axes, plain(part.title))
    if not strips:
        size = style.label
        axes.text(0.5, 0.5, "no finished run", ha="center", va="center", transform=axes.transAxes, fontsize=size)
        return figure
    means = [unit * part.over_seeds(key, column).mean for key, _ in strips for column in (MEAN, WORST)]
    every = unit * np.concatenate([marks.scores for _, marks in strips])
    low, high = ends(every, [value for value in means if np.isfinite(value)])
    span = (high - low) or 1.0
    size = float(np.clip(900 / max(len(marks.scores) for _, marks in strips), 4, 22)) * style.scale**2
    pixels = len(every) > _MANY
    for i, (key, marks) in enumerate(strips):
        shown, hurt = unit * marks.scores, marks.hurt
        inside = (shown >= low) & (shown <= high)
        height = i + spread(np.clip(shown, low, high), span / _BINS)
        mean, worst = (unit * part.over_seeds(key, column).mean for column in (MEAN, WORST))
        bar = 2 * style.scale
        axes.plot([mean, mean], [i - 0.42, i + 0.42], color="black", linewidth=bar, solid_capstyle="butt", zorder=1.5)
        dot, cross = (PALE, PALE) if key[0] in part.muted else (HIT, MISS)
        looks: dict[str, Any] = {"zorder": 2, "rasterized": pixels}
        well, ill = inside & ~hurt, inside & hurt
        axes.scatter(shown[well], height[well], s=size, color=dot, alpha=0.55, linewidths=0, **looks)
        crosses = {"marker": "x", "linewidths": 0.9 * style.scale, "alpha": 0.8}
        axes.scatter(shown[ill], height[ill], s=1.2 * size, color=cross, **crosses, **looks)
        for end, marker, beyond in ((low, "<", shown < low), (high, ">", shown > high)):
            at = np.full(int(beyond.sum()), end)
            if len(at):
                axes.scatter(at, height[beyond], s=2 * size, color=cross, marker=marker, zorder=3)
        triangle: dict[str, Any] = {"marker": "^", "markersize": 6 * style.scale, "linestyle": "none"}
        axes.plot([worst], [i + 0.28], color="black", clip_on=False, **triangle)
    if (every < low).any() or (every > high).any():
        axes.set_xlim(low - 0.02 * span, high + 0.02 * span)
    axes.set_yticks(range(len(strips)), [_tick(part, key, roomy) for key, _ in strips], fontsize=style.small)
    for tick, (key, _) in zip(axes.get_yticklabels(), strips, strict=True):
        tick.set_color(GREY if key[0] in part.muted else "black")
    axes.set_ylim(len(strips) - 0.45, -0.55)
    axes.set_xlabel(f"test {metric.column} of each client" + (", %" if metric.percent else ""), fontsize=style.label)
    compared = any(marks.hurt.any() for key, marks in strips if key[0] not in part.muted)
    muted = any(key[0] in part.muted for key, _ in strips)
    beside(figure, _legend(compared, muted, style.scale))
    caption(figure, [_caption(part, bool(part.muted) and muted), beyond_text(every, low, high), left_out])
    return figure


def ends(values: np.ndarray, always: Sequence[float] = ()) -> tuple[float, float]:
    """The ends of an axis of marks: all of them, or nearly all if the few others would press them together.

    always: values that are inside in any case.
    """
    low, high = float(values.min()), float(values.max())
    inner = [float(end) for end in np.quantile(values, (_FAR / 2, 1 - _FAR / 2), method="closest_observation")]
    near = min([inner[0], *always]), max([inner[1], *always])
    width = near[1] - near[0]
    if not 0 < width < _CROWDED * (high - low):
        return low, high
    close = values[(values >= near[0] - width / 2) & (values <= near[1] + width / 2)]
    return min(near[0], float(close.min())), max(near[1], float(close.max()))


def beyond_text(values: np.ndarray, low: float, high: float) -> str:
    """Say how many marks lie beyond the axis, and how far."""
    parts = [
        f"{int(beyond.sum())} {word} {end:.4g}, at most as far as {far:.4g}"
        for word, end, beyond, far in (
            ("below", low, values < low, values.min()),
            ("above", high, values > high, values.max()),
        )
        if beyond.any()
    ]
    return f"arrows: marks beyond the axis, {' and '.join(parts)}" if parts else ""


def _fewer(part: Part, strips: list[tuple[Key, Strip]]) -> tuple[list[tuple[Key, Strip]], str]:
    """Leave out, where strips are many, the settings that were not chosen, then those with the worst means."""
    if len(strips) <= _LOOSE:
        return strips, ""
    kept = [(key, marks) for key, marks in strips if key[0] not in part.muted]
    told = [f"{len(strips) - len(kept)} settings {NOT_CHOSEN}"] if len(kept) < len(strips) else []
    if len(kept) > _MOST:
        sign = -1 if part.metric.higher else 1
        ranked = sorted(kept, key=lambda one: sign * part.over_seeds(one[0], MEAN).mean)
        best = {key for key, _ in ranked[:_MOST]} | {key for key, _ in kept if part.alone and key[0] == part.alone[0]}
        told.append(f"{len(kept) - len(best)} methods with the worst means")
        kept = [(key, marks) for key, marks in kept if key in best]
    return kept, f"left out: {' and '.join(told)}" if told else ""


def _tick(part: Part, key: Key, roomy: bool) -> str:
    name = plain(part.names.get(key[0], key[0]))
    if roomy:
        return f"{wrapped(name)}\n({plain(key[1])})"
    return wrapped(name if name.lower() == key[1] else f"{name} ({plain(key[1])})", 40)


def _caption(part: Part, muted: bool) -> str:
    seeds, several = seeds_text(part.counts, len(part.seeds)), max(part.counts) > 1
    marks = f"one mark a client and seed, {seeds}" if several else f"one mark a client, {seeds}"
    mean = "the mean over clients, and of the worst tenth of the clients" + (", mean over seeds" if several else "")
    grey = "; grey: settings that validation data did not choose" if muted else ""
    return f"{marks}, marks of nearly equal value next to each other; bar and triangle: {mean}{grey}"


def strip(part: Part, key: Key) -> Strip | None:
    """Build a named model's strip; None if no run is finished. Clients without a value have no mark."""
    scores: list[np.ndarray] = []
    hurt: list[np.ndarray] = []
    for seed, measured in part.measured(key).items():
        values = measured.values[part.metric.name]
        finite = np.isfinite(values)
        scores.append(values[finite])
        hurt.append(part.hurt(key, seed)[finite])
    return Strip(np.concatenate(scores), np.concatenate(hurt)) if scores and sum(map(len, scores)) else None


def spread(values: np.ndarray, width: float) -> np.ndarray:
    """Offsets in [-0.34, 0.34] that keep dots of nearly equal value apart; the same values, the same picture."""
    offsets = np.zeros(len(values))
    bins = np.floor((values - values.min()) / width).astype(np.int64)
    step = min(0.09, 0.68 / max(int(np.bincount(bins).max()) - 1, 1))
    for b in np.unique(bins):
        inside = np.flatnonzero(bins == b)
        rank = np.arange(len(inside))
        offsets[inside] = step * np.where(rank % 2 == 0, rank // 2, -(rank // 2 + 1))
    return offsets


def _legend(compared: bool, muted: bool, scale: float) -> list[Artist]:
    dot: dict[str, Any] = {"linestyle": "none", "markersize": 5 * scale}
    bar: dict[str, Any] = {"markersize": 12 * scale, "markeredgewidth": 2 * scale, "linestyle": "none"}
    handles: list[Artist] = [
        Line2D([], [], color=HIT, marker="o", label="client", **dot),
        Line2D([], [], color="black", marker="|", label="mean", **bar),
        Line2D([], [], color="black", marker="^", markersize=6 * scale, linestyle="none", label="worst 10 %"),
    ]
    if compared:
        handles.insert(1, Line2D([], [], color=MISS, marker="x", label="client worse off\nthan with Local", **dot))
    if muted:
        handles.append(Line2D([], [], color=PALE, marker="o", label=f"setting {NOT_CHOSEN}", **dot))
    return handles


_WIDE = 20  # sizes lie on a logarithmic scale if the largest is this many times the smallest
_NARROW = 5.0  # inches, below which two panels are in one row, otherwise three
_PANELS = 9  # panels


def gain_figure(part: Part, style: Style = REPORT) -> Drawing:
    """Draw a panel for each named model: every client's gain over Local, mean over seeds, against its samples.

    A client above the line is better off than with local training, a cross below it worse. Raises `ConfigError` if
    Local was not run with a seed of another method, or the clients' samples are not known.
    """
    if part.alone is None:
        raise ConfigError(f"cell '{part.id}' has no method 'local', over which the others would gain")
    sizes, size_of = part.sizes()
    gains = {key: gain for key in part.drawn() if key != part.alone and (gain := _gain(part, key)) is not None}
    if sizes is None or not gains:
        raise ConfigError(f"cell '{part.id}': no method has a finished seed in common with local")
    left_out = list(gains)[_PANELS:]
    gains = dict(list(gains.items())[:_PANELS])
    narrow = style.width is not None and style.width < _NARROW
    columns = len(gains) if len(gains) <= (2 if narrow else 4) else 2 if narrow else 3
    rows = -(-len(gains) // columns)
    figure = blank(5.4 if narrow else 0.8 + 2.6 * columns, (1.9 if narrow else 2.3) * rows + 0.6, style)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    every = np.concatenate(list(gains.values()))
    low, high = ends(every[np.isfinite(every)], [0.0])
    margin = 0.06 * (high - low) or 0.01
    size = float(np.clip(1500 / len(sizes), 6, 22)) * style.scale**2
    numbers: list[str] = []
    for axes, (key, gain) in zip(grid.flat, gains.items(), strict=False):
        tidy(axes, style)
        known = np.isfinite(gain) & (sizes > 0)
        axes.axhline(0, color="black", linewidth=0.8 * style.line / REPORT.line)
        inside = known & (gain >= low) & (gain <= high)
        for mask, colour, marker in ((gain > 0, HIT, "o"), (gain == 0, PALE, "D"), (gain < 0, MISS, "x")):
            marks = inside & mask
            thin = 0.9 * style.scale if marker == "x" else 0
            axes.scatter(sizes[marks], gain[marks], s=size, color=colour, marker=marker, linewidths=thin, alpha=0.7)
        for mask, end, marker, colour in ((gain < low, low, "v", MISS), (gain > high, high, "^", HIT)):
            if (known & mask).any():
                at = sizes[known & mask]
                axes.scatter(at, np.full(len(at), end), s=2 * size, color=colour, marker=marker, linewidths=0)
        axes.set_title(wrapped(_name(part, key)), fontsize=style.small, loc="left")
        better, worse = int((gain[known] > 0).sum()), int((gain[known] < 0).sum())
        numbers.append(f"{_name(part, key)} {better} better, {worse} worse, of {int(known.sum())}")
    for axes in list(grid.flat)[len(gains) :]:
        axes.set_axis_off()
    for axes in list(grid.flat)[max(0, len(gains) - columns) : len(gains)]:  # those without a panel below
        axes.set_xlabel(f"{size_of} samples", fontsize=style.label)
        axes.tick_params(labelbottom=True)
    first = grid[0, 0]
    first.set_ylim(low - margin, high + margin)
    positive = sizes[sizes > 0]
    if len(positive) and positive.max() / positive.min() >= _WIDE:
        first.set_xscale("log")
    metric = part.metric
    sign = "" if metric.higher else ", up is better"
    figure.supylabel(f"gain in {metric.column}{', points' if metric.percent else ''}{sign}", fontsize=style.label)
    if style.titled:
        figure.suptitle(plain(part.title), fontsize=style.title, fontweight="bold", x=0.01, ha="left")
    look = {"linestyle": "none", "markersize": 5 * style.scale}
    handles = [("o", HIT, "client better off than with Local"), ("D", PALE, "alike"), ("x", MISS, "worse off")]
    beside(figure, [Line2D([], [], marker=m, color=c, label=wrapped(label), **look) for m, c, label in handles])  # pyright: ignore[reportArgumentType]
    seeds = seeds_text(part.counts, len(part.seeds))
    mean = (
        f"gain: a client's score minus that with local training, {'mean of ' if max(part.counts) > 1 else ''}{seeds}"
    )
    several = [f"not drawn: {', '.join(_name(part, key) for key in left_out)}"] if left_out else []
    known = every[np.isfinite(every)]
    caption(figure, [f"{mean}; clients: {'; '.join(numbers)}", beyond_text(known, low, high), *several])
    return figure


def _gain(part: Part, key: Key) -> np.ndarray | None:
    """Each client's gain over Local, mean over the common seeds, in the units that are shown; up is better."""
    metric = part.metric
    gaps = [
        scores.values[metric.name] - alone
        for seed, scores in part.measured(key).items()
        if (alone := part.reference(seed)) is not None and metric.name in scores.values
    ]
    if not gaps or not np.isfinite(np.stack(gaps)).any():
        return None
    return metric.unit * (1 if metric.higher else -1) * np.mean(gaps, axis=0)


def _name(part: Part, key: Key) -> str:
    name = plain(part.names.get(key[0], key[0]))
    return name if name.lower() == key[1] or len(part.drawn()) == len(part.first) else f"{name} {plain(key[1])}"
