"""The reference of the public names: what each package exports, in groups, from the docstrings."""

import importlib
import inspect
import re
from typing import Any

from docs.make import notation
from idiolect.algorithms.registry import ALGORITHMS

METHODS = {cls.__name__: name for name, cls in ALGORITHMS.items()}
GROUPS = {
    "idiolect": {
        "Train and compare": "run compare combine sweep advise use_cores load_model save_model",
        "What comes back": "Run Comparison Combined SweepResult Advice",
        "Data": "FederatedData",
        "scikit-learn": "PersonalizedClassifier PersonalizedRegressor CombinedClassifier CombinedRegressor",
        "Write a method": "Algorithm Client Cohort",
        "Split execution": "SplitRun",
        "Errors": "IdiolectError ConfigError DataError StoreError DivergedError",
    },
    "idiolect.data": {
        "Your own data": "from_table from_arrays from_images encode_table encode_like FolderWriter "
        "save_data load_data Schema Modalities",
        "Published sets": "mnist fashion_mnist emnist cifar10 omniglot har har_modalities "
        "har_fedmultimodal vehicle school landmine mosi mosei synthetic mixed_effects load describe_data SOURCES",
        "Who gets what": "make_partition apply_partition Partition PARTITIONERS mnist_partition omniglot_partition "
        "partition_images table_partition hold_out downsample drop_modalities MissingPattern number_own_labels",
        "What data are": "FederatedData Split SPLITS ImageSet",
        "Leaks": "audit Audit",
        "Original files": "read_mnist read_fashion_mnist read_emnist read_cifar10",
    },
    "idiolect.graphs": {
        "By shape": "complete star ring random random_normal",
        "By the clients' data": "by_labels by_size nearest label_counts label_shares",
        "Your own": "from_dense from_edges from_networkx from_scipy",
        "By name": "GRAPHS parse_graph graph_for",
        "A graph": "Graph GraphWarning MixingLimit",
        "Mixing": "mix mixed",
    },
    "idiolect.models": {
        "Your own": "from_flax from_functions check_model",
        "The zoo": "MultinomialLogistic LinearRegression MLP CNN Multimodal MODELS build complete_spec "
        "describe_models",
        "Files": "save_model load_model read_header ClientModel",
        "Layers, losses, starts": "Conv2d convolve max_pool INITIALISATIONS initialise loss_of l2_of",
    },
}
"""Every public name of each package, methods and packages aside, in the order of the page."""


ELSEWHERE = {("idiolect", "FederatedData"): "idiolect.data"}
"""Names that two packages export, and the package that explains them."""


def pages() -> dict[str, str]:
    """Return a page per public package and one per group of its names, by path in the site."""
    made = {f"api/{package}.md": page(package) for package in GROUPS}
    for package, groups in GROUPS.items():
        made |= {path(package, title): group(package, title) for title in groups if own(package, title)}
    return made


def navigation() -> list[dict[str, list[Any]]]:
    """Return the packages with their pages, as the site's navigation has them."""
    entries: list[dict[str, list[Any]]] = []
    for package, groups in GROUPS.items():
        inner = [path(package, title) for title in groups if own(package, title)]
        entries.append({package: [{f"All of {package}": f"api/{package}.md"}, *inner]})
    return entries


def path(package: str, title: str) -> str:
    """Return the path in the site of the page of a group."""
    return f"api/{package}/{'-'.join(re.findall('[a-z]+', title.lower().replace(chr(39), '')))}.md"


def own(package: str, title: str) -> list[str]:
    """Return the names of a group that its own page explains."""
    return [name for name in GROUPS[package][title].split() if (package, name) not in ELSEWHERE]


def page(package: str) -> str:
    """Return the page of a package: every name with its first sentence, and a link to the page that explains it."""
    module = importlib.import_module(package)
    about = (module.__doc__ or "").split("\n\n")[0].partition(": ")[2].strip()
    lines = [f"# {package}", "", about[:1].upper() + about[1:], ""]
    for title, names in GROUPS[package].items():
        rows = [f"| {link(package, title, name)} | {sentence(package, name)} |" for name in names.split()]
        lines += [f"## {title}", "", "| name | what it is |", "|---|---|", *rows, ""]
    if package == "idiolect":
        lines += [
            "## Classes of methods",
            "",
            "Each has [a card](../methods.md) with its settings.",
            "",
            "| class | name |",
            "|---|---|",
        ]
        lines += [f"| `idiolect.{cls}` | [`{name}`](../methods/{name}.md) |" for cls, name in METHODS.items()]
    return "\n".join([*lines, ""])


def group(package: str, title: str) -> str:
    """Return the page of a group of names."""
    names = [entry(package, name) for name in own(package, title)]
    return "\n".join([f"# {title}", "", f"Names of [{package}](../{package}.md).", "", *names, ""])


def link(package: str, title: str, name: str) -> str:
    """Return a link from a package's page to the explanation of a name."""
    there = ELSEWHERE.get((package, name), package)
    title = title if there == package else next(t for t, names in GROUPS[there].items() if name in names.split())
    return f"[`{name}`]({path(there, title).removeprefix('api/')}#{home(there, name)})"


def sentence(package: str, name: str) -> str:
    """Return the first sentence of a name's docstring; of a constant, that it is one."""
    value = getattr(importlib.import_module(package), name)
    if not callable(value) or not isinstance(text := inspect.getdoc(value), str):
        return "A constant."
    first = " ".join(text.split("\n\n")[0].split())
    return notation.inline(re.split(r"(?<=[\w)`\]][.!?]) ", first)[0])


def entry(package: str, name: str) -> str:
    """Return what mkdocstrings replaces by the signature and the docstring of a name."""
    options = f"    options:\n      heading: {package}.{name}\n      toc_label: {name}\n      heading_level: 2\n"
    return f"::: {home(package, name)}\n{options}"


def home(package: str, name: str) -> str:
    """Where a name is defined, so that a module of the same name is not meant."""
    value = getattr(importlib.import_module(package), name)
    named = getattr(value, "__name__", "") == name and value.__module__.startswith("idiolect")
    return f"{value.__module__ if named else package}.{name}"
