"""Pages of small stores for the tests of the page's data."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from idiolect.metrics.registry import METRICS
from idiolect.report.html.payload import payload_of
from idiolect.report.view.as_json import to_dict
from idiolect.report.view.from_store import view_of
from idiolect.report.view.parts import Entry, Key, Part, View
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.pairs import Pair
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from idiolect.study.store.summary import over_seeds
from tests.report.stores import PROVENANCE, experiment, finished, scored

HOSTILE = (
    "</script><script>alert(1)</script>",
    "quote \" and ' and `",
    "\u202eright to left\u2066",
    "long " * 2000,
    "emoji \U0001f92f & <b>bold</b>",
    "NUL \0 and /*DATA*/ <!--NOSCRIPT--> \u2028 line",
)
METHODS = ({"name": "local"}, {"name": "fedavg"}, {"name": "ditto"})
NAN = float("nan")


def page_of(view: View) -> dict:
    """The page's data of a view."""
    return payload_of(to_dict(view))


def data_of(results: Results, command: str = "idiolect compare --data toy") -> dict:
    return page_of(view_of(results, command))


def compared(
    folder: Path, seeds: int = 3, gain: float = 0.05, names: Sequence[str] = ("north", "south", "east"), **more
) -> Results:
    """Local, FedAvg and Ditto, of which Ditto is better than Local by about `gain`, and FedAvg worse by 0.1."""
    methods = more.pop("methods", METHODS)
    store, exp = Store(folder), experiment(methods, seeds=seeds, **more)
    own = [0.5 + 0.1 * i for i in range(len(names))]
    titles = [method.get("label") or method["name"] for method in methods]
    for seed in range(seeds):
        noise = 0.01 * (seed % 3 - 1)
        levels = {"local": {"local": noise}, "fedavg": {"global": noise - 0.1}}
        levels["ditto"] = {"personal": gain - noise / 2, "global": -0.2 + noise}
        for method, title in zip(methods, titles, strict=True):
            end = {model: [share + by for share in own] for model, by in levels[method["name"]].items()}
            course = {0: {model: [0.1] * len(own) for model in end}, 10: end, 20: end}
            finished(store, exp, "cell0", title, seed, course, counts=[400] * len(own), splits=("train", "test"),
                     provenance={"clients": list(names), "notes": []})  # fmt: skip
    store.set_fact("audit d", ["No leak found: none of 1,200 test samples has an exact copy in training data."])
    store.set_fact("experiment", exp.model_dump(mode="json"))
    store.set_fact("options", {"command": "idiolect compare --data toy"})
    return Results(store, exp)


SHOWN = {"local": "Local", "fedavg": "FedAvg", "ditto": "Ditto", "one": "One"}


def part_of(
    scores: Mapping[Key, Mapping[int, Sequence[float]]], *pairs: Pair, metric: str = "accuracy",
    counts: Sequence[int] = (400, 400, 400), seconds: Mapping[str, Sequence[float]] | None = None, **more,
) -> Part:  # fmt: skip
    """Build one comparison without a store. scores: (method, model) -> seed -> one score per client."""
    chosen, task = METRICS[metric], METRICS[metric].task
    measured = {
        key: {
            seed: scored(key[1], "test", np.asarray(values, float), np.asarray(counts), task)
            for seed, values in by_seed.items()
        }
        for key, by_seed in scores.items()
    }
    lines = []
    for (method, model), by_seed in measured.items():
        pooled = over_seeds([each.pooled[metric] for each in by_seed.values()])
        mean = over_seeds([float(np.nanmean(each.values[metric])) for each in by_seed.values()])
        none = over_seeds([])
        time = over_seeds((seconds or {}).get(method, ()))
        lines.append(
            Line("cell0", method, model, metric, pooled, mean, none, none, none, none, {metric: pooled}, None, None,
                 (20,) * len(by_seed), time, None, 0)
        )  # fmt: skip
    titles = dict.fromkeys(method for method, _ in scores)
    given = {
        "id": "cell0",
        "title": "A toy",
        "seeds": tuple(sorted({seed for by_seed in scores.values() for seed in by_seed})),
        "methods": tuple(Entry(title, SHOWN[title], title) for title in titles),
        "clients": ("north", "south", "east")[: len(counts)],
        "pairs": {(pair.method, pair.model): pair for pair in pairs},
    }
    return Part(metric=chosen, task=task, lines=tuple(lines), scores=measured, **(given | more))


__all__ = ["HOSTILE", "METHODS", "NAN", "PROVENANCE", "compared", "data_of", "page_of", "part_of"]
