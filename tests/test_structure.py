"""The house: where a module may lie, what it may import, and which names are public."""

import ast
import importlib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from idiolect.algorithms.registry import OWN

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "idiolect"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A folder imports from folders further up in this list only.
FLOORS = [
    ("core",),
    ("data",),
    ("metrics",),
    ("models", "graphs"),
    ("client",),
    ("algorithms",),
    ("runtime",),
    ("study",),
    ("deploy",),
    ("report", "experiments"),
    ("api",),
    ("cli",),
]
LONGEST = 500
TO_BE_SPLIT: set[str] = set()

# Modules whose tests lie elsewhere, and where; none better.
TESTED_IN = {
    "cli/command": "cli/test_help.py",
    "cli/execute": "cli/test_main.py",
    "cli/experiments": "cli/test_main.py",
    "cli/federation": "cli/test_federate.py",
    "cli/inspect": "data/test_inspection.py",
    "cli/launch": "cli/test_main.py",
    "cli/results": "cli/test_terminal.py",
    "cli/show": "cli/test_terminal.py",
    "deploy/hub/create": "cli/test_hub.py",
    "deploy/hub/run": "deploy/test_transport.py",
    "deploy/nvflare/checks": "cli/test_site.py",
    "deploy/site/create": "cli/test_site.py",
    "deploy/site/trainer": "deploy/site/test_site.py",
    "models/client_model": "api/test_predict.py",
    "__init__": "api/test_estimators.py",  # loads the estimators when they are asked for
    "study/store/claim": "study/run/test_engine.py",
    "__main__": "study/run/test_engine.py",  # starts `python -m idiolect`
    "experiments/__init__": "experiments/test_packaged.py",
}

PUBLIC = {
    "idiolect": """
        Advice Algorithm Client Cohort Combined Comparison ConfigError DataError DivergedError FederatedData
        IdiolectError Run SplitRun StoreError SweepResult advise combine compare data graphs load_model models run
        save_model sweep use_cores
    """,
    "idiolect.data": """
        Audit FederatedData FolderWriter ImageSet MissingPattern Modalities PARTITIONERS Partition SOURCES
        SPLITS Schema Split apply_partition audit cifar10 describe_data downsample drop_modalities emnist
        encode_like encode_table fashion_mnist from_arrays from_images from_table har har_fedmultimodal
        har_modalities hold_out landmine load load_data make_partition save_data mixed_effects mnist
        mnist_partition mosei mosi number_own_labels omniglot omniglot_partition partition_images read_cifar10
        read_emnist read_fashion_mnist read_mnist school synthetic table_partition vehicle
    """,
    "idiolect.graphs": """
        GRAPHS Graph GraphWarning MixingLimit by_labels by_size complete from_dense from_edges from_networkx
        from_scipy graph_for label_counts label_shares mix mixed nearest parse_graph random random_normal ring star
    """,
    "idiolect.models": """
        CNN ClientModel Conv2d INITIALISATIONS LinearRegression MLP MODELS Multimodal MultinomialLogistic build
        check_model complete_spec convolve describe_models from_flax from_functions initialise l2_of load_model
        loss_of max_pool read_header save_model
    """,
}


def name_of(path: Path) -> str:
    """src/idiolect/core/tree.py -> core/tree."""
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


NAMES = {name_of(path).removesuffix("/__init__"): path for path in MODULES}


def imported(path: Path) -> set[str]:
    """The modules of the package that a module imports, wherever the imports stand: core/tree, graphs."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if _name(inner) in NAMES else str(node.module))
    return {_name(module) for module in found} & NAMES.keys()


def _name(module: str) -> str:
    return module.removeprefix("idiolect.").replace(".", "/")


def own_code(path: Path) -> bool:
    """Whether a module has more than a docstring, imports and the list of its names."""
    plain = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    return not all(isinstance(node, plain) for node in ast.parse(path.read_text()).body)


def own_test(name: str) -> str:
    """The test file of a module: that of core/tree is core/test_tree.py."""
    folder, _, last = name.rpartition("/")
    return f"{folder}/test_{last}.py".lstrip("/")


def test_every_module_has_a_test_file_of_its_own() -> None:
    missing: list[str] = []
    for path in MODULES:
        name = name_of(path)
        if (path.name == "__init__.py" and not own_code(path)) or (TESTS / own_test(name)).is_file():
            assert name not in TESTED_IN, f"{name} has a test of its own: strike it off the list"
        elif not (name in TESTED_IN and (TESTS / TESTED_IN[name]).is_file()):
            missing.append(name)
    assert not missing


def test_every_test_file_is_of_a_module() -> None:
    names = {name_of(path) for path in MODULES}
    elsewhere = {"benchmarks", "docs", "examples", "experiments", "results"}
    strange = [
        path.relative_to(TESTS).as_posix()
        for path in sorted(TESTS.rglob("test_*.py"))
        if path.parent != TESTS
        and path.relative_to(TESTS).parts[0] not in elsewhere
        and (path.relative_to(TESTS).parent / path.stem.removeprefix("test_")).as_posix() not in names
    ]
    assert strange == ALSO


# Tests of several modules together.
ALSO = [
    "algorithms/test_contract.py",
    "algorithms/test_fedu_mixing.py",
    "algorithms/test_mmfl_clusters.py",
    "algorithms/test_mocha_relations.py",
    "algorithms/test_on_modalities.py",
    "api/test_bad_calls.py",
    "cli/test_bad_input.py",
    "cli/test_broken_stores.py",
    "cli/test_help.py",
    "cli/test_many_bad_inputs.py",
    "cli/test_rights.py",
    "deploy/attacks/test_liar.py",
    "deploy/attacks/test_settings.py",
    "deploy/attacks/test_site_plays_hub.py",
    "deploy/attacks/test_stale.py",
    "deploy/hub/test_honest.py",
    "deploy/hub/test_liars.py",
    "deploy/hub/test_lies.py",
    "deploy/hub/test_membership.py",
    "deploy/hub/test_rollback.py",
    "deploy/nvflare/test_networks.py",
    "deploy/nvflare/test_operation.py",
    "deploy/site/test_consent.py",
    "deploy/site/test_extraction.py",
    "deploy/test_four_hospitals.py",
    "report/html/test_assets.py",
    "report/html/test_client_in_browser.py",
    "report/html/test_page_in_browser.py",
    "report/test_agreement.py",
    "report/test_live_page_in_browser.py",
    "runtime/test_predictors.py",
    "study/search/test_on_devices.py",
]


def test_files_are_short() -> None:
    assets = [path for kind in ("css", "js") for path in PACKAGE.rglob(f"{kind}/*.{kind}")]
    lengths = {path: len(path.read_text().splitlines()) for path in (*MODULES, *assets, *TESTS.rglob("*.py"))}
    long = {path.relative_to(TESTS.parent).as_posix() for path, lines in lengths.items() if lines > LONGEST}
    assert long == TO_BE_SPLIT


def test_nothing_lies_flat_in_the_package() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {folder for floor in FLOORS for folder in floor}
    assert len(FLOORS) <= 12


def test_a_folder_imports_only_from_floors_below_it() -> None:
    height = {folder: level for level, floor in enumerate(FLOORS) for folder in floor}
    wrong: list[str] = []
    for path in MODULES:
        folder = name_of(path).split("/")[0]
        if folder not in height:
            continue
        for name in imported(path):
            other = name.split("/")[0]
            if other != folder and height.get(other, -1) >= height[folder]:
                wrong.append(f"{name_of(path)} imports {name}")
    assert not wrong


def test_imports_go_round_in_no_circle() -> None:
    graph = {name: imported(path) - {name} for name, path in NAMES.items()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the modules


@pytest.mark.parametrize("package", PUBLIC)
def test_the_public_names_are_these(package: str) -> None:
    module = importlib.import_module(package)
    methods = [cls.__name__ for cls in OWN.values()] if package == "idiolect" else []
    assert sorted(module.__all__) == sorted([*methods, *PUBLIC[package].split()])
    assert all(hasattr(module, name) for name in module.__all__)
