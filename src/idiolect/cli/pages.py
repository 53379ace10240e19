"""What can be named, and the page of each name: methods, data, models, metrics, experiments."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, get_annotations, signature
from itertools import takewhile
from typing import Any, get_args

from rich.table import Table
from rich.text import Text

from idiolect import experiments
from idiolect.algorithms import registry as algorithms
from idiolect.algorithms.base import Algorithm
from idiolect.cli.terminal import console, print_json
from idiolect.core.docstrings import text_of
from idiolect.core.errors import unknown
from idiolect.core.losses import LOSSES
from idiolect.core.settings import settings_of
from idiolect.data.sets import registry as sources
from idiolect.metrics import registry as metrics
from idiolect.models import registry as zoo
from idiolect.models.init import INITIALISATIONS
from idiolect.report.text import MISSING

EVERY_SOURCE = """
Further settings, where they are listed:
test, validation: fractions of each client's samples. split_seed: draws them. folder: where the published files are,
by default a sub-folder of --data-dir.
clients: how many. seed: makes the samples, or deals them. downsample: a fraction, which half of the clients keep of
their training data; downsample_test: of their test data. minimum: clients with fewer samples are left out.
"""
EVERY_MODEL = f"""
init: how all layers start, by name: {", ".join(INITIALISATIONS)}.
last_init: how the last layer starts, where not as init says. l2: adds (l2/2) ||w||^2 to the objective.
loss: of one sample, {", ".join(LOSSES)}; where none is named, cross-entropy for classes and half the squared
error for numbers. class_weights: none, or balanced, where a rare class counts as much as a common one.
"""
REQUIRED = "(required)"


@dataclass(frozen=True)
class Page:
    """The page of a name. texts: its description; settings: setting -> default (REQUIRED or None if it has none)."""

    texts: tuple[str, ...]
    settings: dict[str, Any]

    @property
    def text(self) -> str:
        """All texts, as paragraphs."""
        return "\n\n".join(text.strip() for text in self.texts if text.strip())


def method(name: str) -> Page:
    """Build the page of a method: equations, settings, models and source, and the settings of its base classes.

    Raises `ConfigError` on an unknown name, suggesting the nearest; so do the other pages.
    """
    cls = _known("method", name, algorithms.ALGORITHMS)
    bases = takewhile(lambda base: base is not Algorithm, cls.__mro__[1:])
    shared = [f"{base.__name__}: {text_of(base)}" for base in bases if get_annotations(base)]
    return Page((text_of(cls), *shared), algorithms.hyperparameters(cls))


def data(name: str) -> Page:
    """Build the page of a data set: its content, and how it can be read and divided."""
    source = _known("data set", name, sources.SOURCES)
    parameters = signature(source).parameters
    shared = [get_args(p.annotation)[0] for p in parameters.values() if p.kind is Parameter.VAR_KEYWORD]
    defaults = {key: setting.default for key, setting in settings_of(source).items()}
    settings = {key: REQUIRED if value is Parameter.empty else value for key, value in defaults.items()}
    words = [f"{base.__name__}: {text_of(base)}" for base in shared]
    return Page((text_of(source), *words, EVERY_SOURCE), settings)


def model(name: str) -> Page:
    """Build the page of a model of the zoo."""
    entry = _known("model", name, zoo.MODELS)
    settings = {key: value for key, value in zoo.complete_spec(name).items() if key != "name"}
    return Page((entry.description, entry.words, EVERY_MODEL), settings)


def experiment(name: str) -> Page:
    """Build the page of a packaged experiment: the description and cells of every protocol."""
    protocols: dict[str, list[str]] = {}
    for key in experiments.names():
        base, _, protocol = key.partition(" --protocol ")
        protocols.setdefault(base, []).append(protocol)
    texts: list[str] = []
    for protocol in _known("experiment", name, protocols):
        packaged = experiments.packaged(name, protocol) if protocol else experiments.packaged(name)
        heading = f"{packaged.title}\n{packaged.source}" + f"\n--protocol {protocol}" * bool(protocol)
        cells = [f"  {cell.id}: {', '.join(method.title for method in cell.methods)}" for cell in packaged.cells]
        texts += [heading, packaged.description, "\n".join(["cells and methods, for --only CELL/METHOD:", *cells])]
    return Page(tuple(texts), {})


def metric(name: str) -> Page:
    """Build the page of a metric: its formula and its task."""
    entry = _known("metric", name, metrics.METRICS)
    task = f"For {entry.task}; {'higher' if entry.higher else 'lower'} is better."
    units = "Read in per cent; a fraction in CSV and JSON." if entry.percent else ""
    shared = "Over all clients only where they share their classes." if entry.by_class else ""
    return Page((text_of(entry), task, units, shared), {})


LISTS: dict[str, Callable[[], dict[str, str]]] = {
    "methods": algorithms.describe_methods,
    "data": sources.describe_data,
    "models": zoo.describe_models,
    "metrics": metrics.describe_metrics,
    "experiments": experiments.names,
}
PAGES: dict[str, Callable[[str], Page]] = {
    "methods": method,
    "data": data,
    "models": model,
    "metrics": metric,
    "experiments": experiment,
}


def _known(kind: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise unknown(kind, name, known)
    return known[name]


def print_page(kind: str, name: str, page: Page, as_json: bool) -> None:
    """Print the page of a name: its text, its settings with their defaults, and how to set one."""
    if as_json:
        print_json({"name": name, "text": page.text, "settings": page.settings})
        return
    screen = console()
    screen.print(Text(page.text), soft_wrap=True)
    if not page.settings:
        return
    table = Table("setting", "default", box=None)
    for key, default in page.settings.items():
        table.add_row(Text(key, style="bold"), Text(_typed(default)))
    screen.print("\n", table)
    prefix = {"data": "data", "models": "model"}.get(kind, name)
    typed = {key: value for key, value in page.settings.items() if value not in (None, REQUIRED)} or page.settings
    key, value = next(iter(typed.items()))
    screen.print(Text(f"\nset one with, for example: --set {prefix}.{key}={_typed(value)}"))


def _typed(value: Any) -> str:
    """Format a value as it is typed after --set; a dash for None."""
    if value is None:
        return MISSING
    return value if isinstance(value, str) else json.dumps(value)
