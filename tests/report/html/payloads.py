"""Data for the page that no run made: every optional part is filled, and numbers follow from a seed."""

from pathlib import Path
from typing import Any

import numpy as np

from idiolect.report.layout import DASHES, Course, limits, outside, stacks

ASSETS = Path(__file__).parents[3] / "src" / "idiolect" / "report" / "html" / "assets"
POINT = "#clients-0 figure:nth-child(1) svg .point"
"""The dots of the first chart of clients."""
TITLES = ["FedAvg", "Ditto", "pFedMe", "FedPer", "Local", "FedU", "Scaffold", "Per-FedAvg", "LG-FedAvg", "APFL"]
HOSTILE = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "</script><script>window.hacked = 1</script>",
    "\u202eright to left\u202c שלום مرحبا",
    "long " + "x" * 9995,
    "🏥👩‍⚕️ clinic",
    "/*SCRIPT*/ {{x}} ${1+1} &lt;b&gt; '\"\\",
]


CONCLUSION = {
    "decision": "use",
    "headline": "Use Ditto: 3.4 points better than local training.",
    "numbers": "5 seeds, 24 clients; Ditto 82.10 ± 0.40 % accuracy: +3.40 points compared with local training "
    "(95 % interval +2.10 to +4.70), adjusted p 0.001",
    "chips": [
        {"kind": "gains", "title": "13 of 24 clients gain, tested", "text": "9 show no difference beyond noise."},
        {"kind": "loses", "title": "2 of 24 clients lose, tested", "text": "Largest loss: hospital 7."},
        {"kind": "made", "title": "5 seeds, no leak found", "text": "Scores of test rows, last round."},
    ],
}


def payload(clients: int = 24, methods: int = 6, cells: int = 1, names: list[str] | None = None) -> dict[str, Any]:
    """Fill every part. names: of the first clients, the methods and the labels, instead of plain ones."""
    made = [cell(k, clients, methods, names) for k in range(cells)]
    return {
        "title": names[0] if names else "Twenty-four hospitals",
        "source": "runs/hospitals",
        "description": "A made-up federation.",
        "protocol": "Every client tests on its own held-out samples after the last round.",
        **CONCLUSION,
        "missing": ["One method has no curve: only its CSV files are here."],
        "command": 'idiolect compare hospitals.toml --out "runs/hospitals"',
        "made_with": [["idiolect", "0.1.0"], ["jax", "0.9"]],
        "seeds": [0, 1, 2],
        "leaks": [
            {"text": "2 rows are in training and test data.", "severe": True},
            {"text": "A column.", "severe": False},
        ],
        "chosen": ["The last round is shown for every method."],
        "how_to_read": ["A dot above the line is a client that wins."],
        "cells": made,
    }


def cell(place: int, clients: int, methods: int, names: list[str] | None) -> dict[str, Any]:
    """Fill one cell: methods with a personal model, the first with a global one, the fifth is Local."""
    rng = np.random.default_rng(place)
    titles = (
        [*(names or []), *TITLES][:methods] if names else [TITLES[k % 10] + "'" * (k // 10) for k in range(methods)]
    )
    local = min(4, methods - 1)
    kinds = ["global" if k == 0 else "local" if k == local else "personal" for k in range(methods)]
    models = [
        {
            "key": f"m{k}",
            "method": f"k{k}",
            "model": kind,
            "title": titles[k] if kind == "local" else f"{titles[k]}, {kind}",
            "dash": list(DASHES[kind]),
            "default": True,
        }
        for k, kind in enumerate(kinds)
    ]
    keys = [str(model["key"]) for model in models]
    people = [*(names or []), *(f"hospital {k}" for k in range(clients))][:clients]
    base = rng.beta(8, 3, clients)
    skew = rng.beta(2, 4, clients)
    scores = {
        key: np.clip(
            base
            + (0.02 * k - 0.04)
            + (0.25 * skew - 0.06) * (k != 0) * (k != local)
            + 0.02 * rng.normal(size=clients),
            0,
            1,
        )
        for k, key in enumerate(keys)
    }
    gains = {key: scores[key] - scores[f"m{local}"] for key in keys}
    labels = [*(names or []), *(f"label {k}" for k in range(10))][:10]
    counts = np.stack(
        [rng.multinomial(int(60 * (1 + 9 * rng.beta(1, 4))), rng.dirichlet(np.full(10, 0.5))) for _ in range(clients)]
    )
    return {
        "id": f"cell{place}",
        "title": f"{names[1] if names else 'Hospitals'} {place}",
        "notes": [],
        **CONCLUSION,
        "headline": f"Use Ditto in cell {place}.",
        "about": "m1",
        "settings": [["model", "MLP"], ["rounds", "40"]],
        "metric": {
            "name": "test accuracy",
            "column": "test_accuracy",
            "percent": True,
            "higher": True,
            "task": "classification",
        },
        "methods": [{"key": f"k{k}", "title": title, "color": k, "muted": False} for k, title in enumerate(titles)],
        "models": models,
        "table": table(models, scores, rng),
        "tables": [
            {"title": "Paired differences", "header": ["pair", "difference"], "rows": [["Ditto − Local", "3.4"]]}
        ],
        "shares": {"title": "Shares", "header": ["method", "hurt vs Local"], "rows": [["Ditto", "8 %"]]},
        "curves": curves(keys, rng),
        "clients": {
            "names": people,
            "train": counts.sum(1).tolist(),
            "test": (counts.sum(1) // 4).tolist(),
            "skew": rounded(skew),
            "labels": {"names": labels, "counts": counts.tolist()},
            "label_values": None,
            "scores": {key: rounded(values) for key, values in scores.items()},
            "half": {key: rounded(np.abs(rng.normal(0.01, 0.004, clients))) for key in keys},
            "local": f"m{local}",
            "shared": "m0",
            "beyond": {
                key: [int(g > 0.02) - int(g < -0.02) for g in gains[key]] for key in keys if key != f"m{local}"
            },
            "distances": {
                key: rounded(rng.gamma(4, 1, clients) * (1 + skew))
                for k, key in enumerate(keys)
                if kinds[k] == "personal"
            },
            "confusion": {
                key: [confusion(row, s) for row, s in zip(counts // 4, scores[key], strict=True)] for key in keys
            },
            "confusion_note": "Summed over seeds.",
            "residuals": None,
        },
        "graph": graph(clients, rng),
        "sweep": sweep(rng),
    }


def rounded(values: Any) -> list[float]:
    """Round to five significant digits."""
    return [float(f"{value:.5g}") for value in values]


def confusion(row: Any, score: float) -> list[list[int]]:
    """Right as often as the score says, else one label further."""
    right = np.round(row * score).astype(int)
    return (np.diag(right) + np.roll(np.diag(row - right), 1, axis=1)).tolist()


def table(models: list[dict[str, Any]], scores: dict[str, Any], rng: Any) -> dict[str, Any]:
    """Mean, worst tenth, bytes and seconds of each model; the last has no seconds."""
    rows: list[dict[str, Any]] = []
    best = max(scores, key=lambda key: scores[key].mean())
    for k, model in enumerate(models):
        mean, worst = scores[model["key"]].mean(), np.quantile(scores[model["key"]], 0.1)
        seconds = None if k == len(models) - 1 else round(float(rng.uniform(2, 30)), 1)
        values = [
            (model["title"], model["title"]),
            (f"{100 * mean:.1f} % ± 0.4", mean),
            (f"{100 * worst:.1f} %", worst),
            (f"{k * 1.3:.1f} MB", k * 1.3e6),
            ("–" if seconds is None else f"{seconds} s", seconds),
        ]
        cells = [
            {
                "text": t,
                "sort": s if s is None or isinstance(s, str) else float(s),
                "bold": model["key"] == best and j == 1,
            }
            for j, (t, s) in enumerate(values)
        ]
        rows.append({"model": model["key"], "best": model["key"] == best, "cells": cells})
    helps = [
        "",
        "Mean over test samples, then over seeds.",
        "The tenth of clients that score worst.",
        "Sent up by one client.",
        "",
    ]
    titles = ["model", "test accuracy", "worst 10 %", "bytes up", "seconds"]
    columns = [{"title": t, "help": h, "numeric": i > 0} for i, (t, h) in enumerate(zip(titles, helps, strict=True))]
    return {"caption": "3 seeds, ± half of the 95 % interval", "columns": columns, "rows": rows}


def curves(keys: list[str], rng: Any) -> dict[str, Any]:
    """Rising curves; the second and third coincide, the last diverges."""
    rounds = list(range(0, 41, 2))
    x = np.array(rounds)
    series: list[dict[str, Any]] = []
    for k, key in enumerate(keys):
        mean = 0.82 + 0.008 * k - 0.5 * np.exp(-x / (6 + k)) + 0.004 * rng.normal(size=x.size)
        if k == 2:
            mean = np.array(series[1]["mean"])
        if len(keys) > 4 and k == len(keys) - 1:
            mean = 0.1 + 0.02 * rng.normal(size=x.size)
        series.append(
            {
                "model": key,
                "rounds": rounds,
                "mean": rounded(mean),
                "low": rounded(mean - 0.01),
                "high": rounded(mean + 0.01),
                "improving": k == 3,
            }
        )
    loss = [
        {
            **one,
            "mean": rounded(2 - 2 * np.array(one["mean"])),
            "improving": None,
            "low": [None] * len(rounds),
            "high": [None] * len(rounds),
        }
        for one in series[:-1]
    ]
    quantities = [
        {"kind": "score", "title": "test accuracy", "percent": True, "series": series, **layout(series, rising=True)},
        {"kind": "loss", "title": "training loss", "percent": False, "series": loss, **layout(loss, rising=False)},
    ]
    return {
        "quantities": quantities,
        "band": "± half of the 95 % interval over seeds (Student's t), of the seeds that have ended (of 3)",
    }


def layout(series: list[dict[str, Any]], *, rising: bool) -> dict[str, Any]:
    """The axis, the lines beyond it and those that coincide, as report.json has them."""
    courses = [
        Course("", one["model"], np.array(one["rounds"]), np.array(one["mean"]), np.full(len(one["rounds"]), 0.01))
        for one in series
    ]
    ends = limits(courses, rising=rising)

    def named(lines: list[Course]) -> list[str]:
        return [course.model for course in lines]

    return {
        "domain": list(ends),
        "stacks": [named(group) for group in stacks(courses, ends) if len(group) > 1],
        "outside": [
            {"side": one.word, "wholly": named(one.wholly), "partly": named(one.partly)}
            for one in outside(courses, ends)
        ],
    }


def graph(clients: int, rng: Any) -> dict[str, Any]:
    """A ring with chords."""
    edges = [[k, (k + 1) % clients, 1.0] for k in range(clients)] if clients > 2 else []
    edges += [
        [k, (k * 7 + 3) % clients, round(float(rng.uniform(0.1, 1)), 3)]
        for k in range(0, clients, 3)
        if (k * 7 + 3) % clients != k
    ]
    laplacian = np.zeros((clients, clients))
    for a, b, weight in edges:
        i, j = int(a), int(b)
        laplacian[[i, j], [i, j]] += weight
        laplacian[[i, j], [j, i]] -= weight
    values = (
        [max(0.0, value) for value in rounded(np.round(np.linalg.eigvalsh(laplacian), 6))] if clients <= 200 else []
    )
    return {
        "title": "Who is tied to whom",
        "edges": edges,
        "eigenvalues": values,
        "learned": False,
        "note": "A ring with chords.",
    }


def sweep(rng: Any) -> dict[str, Any]:
    """Thirty settings of two methods, one chosen of each."""
    runs = [
        {
            "method": f"k{k % 2}",
            "values": [float(10 ** rng.uniform(-3, 0)), int(rng.integers(1, 6)), ["sgd", "adam"][k % 3 % 2]],
            "score": round(float(rng.uniform(0.6, 0.85)), 4),
            "chosen": k in (4, 7),
        }
        for k in range(30)
    ]
    dimensions = [
        {"title": "learning rate", "log": True},
        {"title": "local epochs", "log": False},
        {"title": "optimizer", "log": False, "values": ["sgd", "adam"]},
    ]
    return {"dimensions": dimensions, "runs": runs, "score_title": "validation accuracy"}
