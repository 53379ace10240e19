"""The two pictures of README.md, from measured numbers: `python -m docs.make.pictures`.

docs/figures/natural.svg: what federation gains on two natural federations (results/gallery).
docs/figures/speed.svg: the ratios of docs/performance.md.
"""

import re
from pathlib import Path

import numpy as np
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from idiolect.report.style import GREY, HIT, MISS, REPORT, Drawing, blank, tidy, write
from idiolect.report.view.conclusion import default_of
from idiolect.report.view.folder import view_of_folder
from idiolect.report.view.parts import Part

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
PERFORMANCE = ROOT / "docs" / "performance.md"
FEDERATIONS = {"exam": "63 schools: exam scores", "har": "30 people: six activities"}
"""Folders of results/gallery, and what stands above their panels."""
MODELS = {
    "ditto": "Ditto, own models",
    "fedavg-ft": "FedAvg, fine-tuned by each",
    "fedavg": "FedAvg, one model for all",
    "global": "all rows in one place",
}
"""Methods of the picture, and what their models are."""
LOOPS = {
    "W7": "FedU, linear",
    "W1": "pFedMe, linear",
    "W3": "FedAvg, linear",
    "W2": "pFedMe, MLP",
    "W5": "FedAvg, MLP, all rows",
    "W4": "FedAvg, CNN",
    "W6f": "FedAvg, Omniglot's CNN",
}
"""The rows of the speed picture: workload -> what it is."""
ALL = ("W3", "W4")
"""Workloads that all systems ran, and that the picture shows for each."""


def gains(part: Part) -> list[tuple[str, float, float, float]]:
    """(model, gain over local training, the ends of its 95 % interval) of the chosen settings, the best first."""
    sign = 1.0 if part.metric.higher else -1.0
    found = []
    for (method, model), pair in part.pairs.items():
        gap, name = pair.difference, part.entry(method).name
        if model != default_of(part, method) or name not in MODELS:
            continue
        if gap is not None and gap.low is not None and gap.high is not None:
            low, high = sorted((sign * gap.low, sign * gap.high))
            found.append((MODELS[name], sign * gap.mean, low, high))
    return sorted(found, key=lambda one: -one[1])


def natural() -> Drawing:
    """What every model gains over local training on two federations, with 95 % intervals."""
    figure = blank(9.0, 2.4)
    axes = figure.subplots(1, len(FEDERATIONS))
    for one, (folder, title) in zip(axes, FEDERATIONS.items(), strict=True):
        (part,) = view_of_folder(ROOT / "results" / "gallery" / folder).parts
        rows = gains(part)
        places = np.arange(len(rows))[::-1]
        for place, (_, gain, low, high) in zip(places, rows, strict=True):
            colour = HIT if low > 0 else MISS if high < 0 else GREY
            one.plot([low, high], [place, place], color=colour)
            one.plot(gain, place, "o", color=colour)
        one.axvline(0, color=GREY, linewidth=1)
        one.set_yticks(places, [name for name, *_ in rows])
        one.set_ylim(-0.6, len(rows) - 0.4)
        one.set_title(title)
        one.set_xlabel(f"gain in {part.metric.column} over local training →")
        tidy(one)
    return figure


def ratios(text: str) -> dict[str, tuple[float, dict[str, float]]]:
    """Workload -> (times as fast as the PyTorch loop, the same of other systems), read from docs/performance.md."""
    rows = re.finditer(r"^\| (W\w+) \| [\d.]+ \| [\d.]+ \| ([\d.*]+) \|", text, re.MULTILINE)
    loop = {row[1]: float(row[2].strip("*")) for row in rows}
    heads = re.search(r"^\| workload \| (.+) \|$", text, re.MULTILINE)
    assert heads is not None
    names = heads[1].split(" | ")
    others: dict[str, dict[str, float]] = {}
    for row in re.finditer(r"^\| (W\w+) \| (.+ s, .+) \|$", text, re.MULTILINE):
        values = [re.search(r" s, \**([\d.]+)", cell) for cell in row[2].split(" | ")]
        others[row[1]] = {name: float(value[1]) for name, value in zip(names, values, strict=True) if value}
    return {work: (ratio, others.get(work, {})) for work, ratio in loop.items()}


def speed() -> Drawing:
    """Bars: how many times as fast as a PyTorch loop a round is, and as other systems."""
    measured = ratios(PERFORMANCE.read_text(encoding="utf-8"))
    bars = list[tuple[str, float]]()
    for work, shown in LOOPS.items():
        loop, others = measured[work]
        peers = sorted(others.items(), key=lambda peer: -peer[1]) if work in ALL else []
        bars += [(f"{shown}: {name}", ratio) for name, ratio in [("PyTorch loop", loop), *peers]]
    figure = blank(8.0, 3.6)
    axes = figure.subplots()
    places = np.arange(len(bars))[::-1]
    values = [ratio for _, ratio in bars]
    axes.barh(
        places, np.array(values) - 1, left=1, color=[HIT if value > 1 else MISS for value in values], height=0.7
    )
    for place, value in zip(places, values, strict=True):
        axes.text(max(value, 1) * 1.06, place, f"{value:g}", va="center", color=GREY)
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.5, 60)
    axes.xaxis.set_major_locator(FixedLocator([0.5, 1, 2, 5, 10, 20, 50]))
    axes.xaxis.set_major_formatter(FixedFormatter(["0.5", "equal", "2", "5", "10", "20", "50"]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(places, [name for name, _ in bars])
    axes.set_xlabel("times as fast: the other's seconds of a round, divided by idiolect's")
    tidy(axes)
    return figure


if __name__ == "__main__":
    write(natural(), FIGURES / "natural.svg", "svg", REPORT)
    write(speed(), FIGURES / "speed.svg", "svg", REPORT)
