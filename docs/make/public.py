"""The reference of the public names: what each package exports, in groups, from the docstrings."""

import importlib

from idiolect.algorithms.registry import ALGORITHMS

METHODS = {cls.__name__: name for name, cls in ALGORITHMS.items()}
GROUPS = {
    "idiolect": {
        "Train and compare": "run compare sweep advise use_cores load_model save_model",
        "What comes back": "Run Comparison SweepResult Advice",
        "Data": "FederatedData",
        "scikit-learn": "PersonalizedClassifier PersonalizedRegressor",
        "Write a method": "Algorithm Client Cohort",
        "Split execution": "SplitRun",
        "Errors": "IdiolectError ConfigError DataError StoreError DivergedError",
    },
    "idiolect.data": {
        "Your own data": "from_table from_arrays from_images encode_like Schema Modalities",
        "Published sets": "mnist fashion_mnist emnist cifar10 omniglot har har_modalities "
        "har_fedmultimodal vehicle school landmine mosi mosei synthetic load describe_data SOURCES",
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


def pages() -> dict[str, str]:
    """A page for each public package, by its path in the site."""
    return {f"api/{package}.md": page(package) for package in GROUPS}


def page(package: str) -> str:
    """The page of a package."""
    module = importlib.import_module(package)
    about = (module.__doc__ or "").split("\n\n")[0].partition(": ")[2].strip()
    lines = [f"# {package}", "", about[:1].upper() + about[1:], ""]
    for title, names in GROUPS[package].items():
        lines += [f"## {title}", "", *(entry(package, name) for name in names.split())]
    if package == "idiolect":
        lines += [
            "## Methods",
            "",
            "Each has [a card](../methods.md) with its settings.",
            "",
            "| class | name |",
            "|---|---|",
        ]
        lines += [f"| `idiolect.{cls}` | [`{name}`](../methods/{name}.md) |" for cls, name in METHODS.items()]
    return "\n".join([*lines, ""])


def entry(package: str, name: str) -> str:
    """What mkdocstrings replaces by the signature and the docstring of a name."""
    return f"::: {home(package, name)}\n    options:\n      heading: {package}.{name}\n      toc_label: {name}\n"


def home(package: str, name: str) -> str:
    """Where a name is defined, so that a module of the same name is not meant."""
    value = getattr(importlib.import_module(package), name)
    named = getattr(value, "__name__", "") == name and value.__module__.startswith("idiolect")
    return f"{value.__module__ if named else package}.{name}"
