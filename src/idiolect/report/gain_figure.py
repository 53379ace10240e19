"""Who gains: each client's score minus its score alone, against its number of samples."""

import numpy as np
from matplotlib.lines import Line2D

from idiolect.core.errors import ConfigError
from idiolect.report.captions import seeds_text
from idiolect.report.legend import beside, wrapped
from idiolect.report.strips import beyond_text, ends
from idiolect.report.style import HIT, MISS, PALE, REPORT, Drawing, Style, blank, caption, plain, tidy
from idiolect.report.view.parts import Key, Part

_WIDE = 20  # sizes lie on a logarithmic scale if the largest is this many times the smallest
_NARROW = 5.0  # inches, below which two panels stand side by side, else three
_MOST = 9  # panels


def gain_figure(part: Part, style: Style = REPORT) -> Drawing:
    """Draw a panel for each named model: every client's gain over Local, mean over seeds, against its samples.

    A client above the line is better off than alone, a cross below it worse. Raises `ConfigError` if Local was not
    run with a seed of another method, or the clients' samples are not known.
    """
    if part.alone is None:
        raise ConfigError(f"cell '{part.id}' has no method 'local', over which the others would gain")
    sizes, size_of = part.sizes()
    gains = {key: gain for key in part.drawn() if key != part.alone and (gain := _gain(part, key)) is not None}
    if sizes is None or not gains:
        raise ConfigError(f"cell '{part.id}': no method has a finished seed in common with local")
    left_out = list(gains)[_MOST:]
    gains = dict(list(gains.items())[:_MOST])
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
    mean = f"gain: a client's score minus its score alone, {'mean of ' if max(part.counts) > 1 else ''}{seeds}"
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
