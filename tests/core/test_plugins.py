"""A file or another package brings a method, metric, data set, model, graph or section, usable by name everywhere."""

import importlib
import json
import os
import subprocess
import sys
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

import pytest

from idiolect.core import plugins
from idiolect.core.errors import ConfigError
from idiolect.core.plugins import PluginWarning, Registry, provided

ROOT = Path(__file__).parents[2]
METHOD = '''
import jax
import jax.numpy as jnp

import idiolect


class Halfway(idiolect.Algorithm):
    """The server moves by half of the mean step; one full gradient step per client.

    rate: the length of a client's step.
    """

    name = "halfway"
    title = "Halfway"
    summary = "half of a step"
    source = "a test"
    rate: float = 0.5

    def local(self, view, private, client, key):
        return jax.tree.map(lambda p, g: p - self.rate * g, view, client.grad(view, None)), private

    def aggregate(self, shared, cohort, messages):
        mean = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), messages)
        return jax.tree.map(lambda old, new: (old + new) / 2, shared, mean)
'''
METRIC = '''
import jax.numpy as jnp

from idiolect.metrics.base import OfSums


class Misses(OfSums):
    """The share of wrong labels."""

    name, column, task, higher = "misses", "misses", "classification", False
    is_mean = True

    def sample(self, outputs, label):
        return (jnp.argmax(outputs) != label).astype(outputs.dtype)

    def finish(self, sums, count):
        return sums, count
'''
DATA = '''
import numpy as np

from idiolect.data import FederatedData, from_arrays


def clouds(clients: int = 3, seed: int = 0) -> FederatedData:
    """Two clouds of points per client."""
    rng, parts = np.random.default_rng(seed), {}
    for i in range(clients):
        y = np.arange(40) % 2
        parts[f"c{i}"] = (rng.normal(size=(40, 2)) + 2 * y[:, None]).astype("f4"), y
    return from_arrays(parts)
'''
MODEL = """
import equinox as eqx

from idiolect.core.plugins import named


@named("one-number", description="one number for every class", words="It has no settings.", tasks=("classification",))
def one_number(spec, feature_shape, num_outputs, key):
    return eqx.nn.Linear(feature_shape[0], num_outputs, key=key)
"""
GRAPH = '''
from idiolect.core.plugins import named
from idiolect.graphs import Graph, from_edges


@named("ladder", of=lambda data: data.num_clients)
def ladder(num_clients: int, *, rungs: float = 1.0) -> Graph:
    """Join neighbours."""
    return from_edges([(k, k + 1, rungs) for k in range(num_clients - 1)], num_clients)
'''
SECTION = '''
from idiolect.core.plugins import named
from idiolect.report.view.parts import Extra


@named("sizes")
def sizes(results, cell, pairs):
    """How many clients a cell has."""
    return Extra("Sizes of the federation", ("clients",), ((str(len(results.clients(cell))),),))
'''
PACKAGE = METHOD + METRIC + DATA + MODEL + GRAPH + SECTION
ENTRIES = """[idiolect.methods]
halfway = brought:Halfway
broken = brought:Nothing

[idiolect.metrics]
misses = brought:Misses

[idiolect.data]
clouds = brought:clouds

[idiolect.models]
one-number = brought:one_number

[idiolect.graphs]
ladder = brought:ladder

[idiolect.sections]
sizes = brought:sizes
"""
PYTHON = """
import json
from pathlib import Path
import idiolect
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import data_of, experiment_of, hub_of, scores_of, sites_of

data, folder = data_of(), Path("real")
run_hub(hub_of(folder / "hub", experiment_of(["halfway"], metric="misses"), data), InProcess(sites_of(folder, data)))
scores = scores_of(folder / "hub", "t/halfway/seed0")
print(json.dumps({"sites": len(scores), "misses": [s.pooled["misses"] for s in scores.values()][-1]}))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """With a package that is installed: its module, and the file with its entry points."""
    (tmp_path / "installed" / "brought-1.5.dist-info").mkdir(parents=True)
    (tmp_path / "installed" / "brought.py").write_text(PACKAGE)
    about = tmp_path / "installed" / "brought-1.5.dist-info"
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    path = os.pathsep.join([str(ROOT / "src"), str(tmp_path / "installed"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path, "JAX_NUM_CPU_DEVICES": "1"}


def call(environment: dict[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@pytest.mark.second
def test_what_a_package_brings_is_used_by_name_in_a_comparison_and_at_sites(tmp_path, environment):
    words = (
        "-m idiolect compare --data clouds --set data.clients=2 --methods halfway,fedu --metric misses --seeds 1 "
        "--set model.name=one-number --set fedu.graph=ladder(rungs=0.5)"
    )
    done = call(environment, tmp_path, *words.split(), "--rounds", "2", "--out", "out")
    assert "idiolect.methods 'broken' of brought is left out: AttributeError" in done.stderr
    table = (tmp_path / "out" / "table.csv").read_text()
    assert "misses" in table.splitlines()[0]
    assert "halfway" in table
    reported = json.loads((tmp_path / "out" / "report.json").read_text())["cells"][0]["tables"][-1]
    assert (reported["title"], reported["rows"]) == ("Sizes of the federation", [["2"]])
    assert "Sizes of the federation" in (tmp_path / "out" / "report.md").read_text()
    assert "Sizes of the federation" in (tmp_path / "out" / "report.html").read_text()
    shown = call(environment, tmp_path, "-m", "idiolect", "list", "methods", "halfway")
    assert "half of the mean step" in shown.stdout
    real = json.loads(call(environment, tmp_path, "-c", PYTHON).stdout.splitlines()[-1])
    assert real["sites"] > 0
    assert 0 <= real["misses"] <= 1


@pytest.mark.second
@pytest.mark.parametrize("first", ["algorithms.base", "data", "api", "metrics.registry"])
def test_the_package_may_import_idiolect_whichever_part_was_imported_first(first, tmp_path, environment):
    code = f"import idiolect.{first}; from idiolect.data import load; print(load({{'name': 'clouds'}}).num_clients)"
    assert call(environment, tmp_path, "-c", code).stdout.split() == ["3"]


def test_a_registry_reads_its_group_at_the_first_look(monkeypatch):
    read: list[str] = []

    def reader(group: str, known: object, taken: object) -> dict[str, int]:
        read.append(group)
        return {"theirs": 2}

    monkeypatch.setattr(plugins, "provided", reader)
    looks = (
        lambda r: "theirs" in r,
        lambda r: r["theirs"] == 2,
        lambda r: list(r) == ["own", "theirs"],
        lambda r: len(r) == 2,
        lambda r: r.get("theirs") == 2,
        lambda r: {*r.keys()} == {"own", "theirs"},
        lambda r: [*r.values()] == [1, 2],
        lambda r: dict(r.items()) == {**r} == dict(r) == {"own": 1, "theirs": 2},
    )
    for count, look in enumerate(looks):
        registry = Registry("g", {"own": 1}, lambda _, value: 0)
        registry["own"] = 1
        assert len(read) == count
        assert look(registry)
        assert look(registry)
        assert len(read) == count + 1
    assert registry.get(3) is None
    assert 3 not in registry
    registry = Registry("g", {"own": 1}, lambda _, value: 0)
    assert {**registry} == {"own": 1, "theirs": 2}


class Fake(Distribution):
    """A package that is installed, with this name and version."""

    def read_text(self, filename: str) -> str | None:
        return "Name: fake\nVersion: 2.0\n" if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        return Path(str(path))


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "g")._for(Fake())  # pyright: ignore[reportAttributeAccessIssue]


def test_what_cannot_be_used_is_left_out_with_its_package_and_the_reason(monkeypatch):
    entries = [entry("pi", "math:pi"), entry("pi", "math:tau"), entry("fedavg", "math:e"), entry("no", "math:none")]
    monkeypatch.setattr(plugins, "entry_points", lambda group: entries if group == "g" else [])
    monkeypatch.setattr(plugins, "version", lambda name: "2.0")
    monkeypatch.setattr(plugins, "PACKAGES", {})

    def taken(name: str, value: object) -> object:
        if name == "no":
            raise ConfigError("never")
        return value

    with pytest.warns(PluginWarning) as warned:
        found = provided("g", {"fedavg"}, taken)
    assert found == {"pi": 3.141592653589793}
    assert plugins.PACKAGES == {"fake": "2.0"}
    assert [str(one.message) for one in warned] == [
        "g 'fedavg' of fake is left out: this name is in use already",
        "g 'no' of fake is left out: AttributeError: module 'math' has no attribute 'none'",
        "g 'pi' of fake is left out: this name is in use already",
    ]
    assert provided("other", (), taken) == {}


def test_a_function_has_the_names_that_it_is_marked_with(monkeypatch):
    @plugins.named("first", size=1)
    @plugins.named("second", size=2)
    def both() -> int:
        return 3

    assert plugins.names_of(both) == {"first": {"size": 1}, "second": {"size": 2}}
    assert [*plugins.names_of(both)] == ["first", "second"]
    assert both() == 3
    assert plugins.names_of(print) == plugins.names_of(None) == {}


def test_two_functions_of_one_name_are_refused(tmp_path, monkeypatch):
    (tmp_path / "twice" / "inner").mkdir(parents=True)
    (tmp_path / "twice" / "__init__.py").write_text("")
    (tmp_path / "twice" / "inner" / "__init__.py").write_text("")
    for path in ("a.py", "inner/b.py"):
        marked = "from idiolect.core.plugins import named\n\n\n@named('x')\ndef f():\n    pass\n"
        (tmp_path / "twice" / path).write_text(marked)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"twice\.a and twice\.inner\.b both define 'x'"):
        plugins.named_functions("twice")
    (tmp_path / "twice" / "inner" / "b.py").write_text("from twice.a import f\n")
    sys.modules.pop("twice.inner.b")
    importlib.invalidate_caches()
    function, facts = plugins.named_functions("twice")["x"]  # what is only imported does not count
    assert (function.__module__, facts) == ("twice.a", {})


def test_a_registry_may_find_its_own_at_the_first_look(monkeypatch):
    looked: list[int] = []

    def own() -> dict[str, int]:
        looked.append(1)
        return {"one": 1, "two": 2}

    monkeypatch.setattr(plugins, "provided", lambda group, known, taken: {"theirs": len(known)})
    registry: Registry[int] = Registry("g", own, lambda _, value: 0)
    registry["two"] = 20
    assert looked == []
    assert {**registry} == {"one": 1, "two": 20, "theirs": 2}
    assert looked == [1]


FOUND = """
import sys
import idiolect.algorithms, idiolect.data.sets, idiolect.graphs, idiolect.metrics, idiolect.models
import idiolect.report.sections

for name in ("algorithms", "metrics", "data.sets", "models", "graphs", "report.sections"):
    sys.modules[f"idiolect.{name}"].__path__.append(f"{sys.argv[1]}/{name}")
import idiolect
from docs.make import cards, stub
from idiolect.cli.main import app
from idiolect.metrics.registry import describe_metrics

assert idiolect.Halfway.name == "halfway" and "Halfway" in idiolect.__all__
assert "from idiolect.algorithms.halfway import Halfway as Halfway" in stub.stub()
assert {"Others": ["methods/halfway.md"]} in cards.navigation()
assert "| `rate` |" in cards.settings_of(idiolect.Halfway)
assert "share of wrong labels" in describe_metrics()["misses"]
data = idiolect.data.load({"name": "clouds"})
methods = ["halfway", {"name": "fedu", "graph": "ladder(rungs=0.5)"}]
idiolect.compare(data, "one-number", methods, rounds=2, metric="misses", out=sys.argv[1] + "/out")
assert "Sizes of the federation" in open(sys.argv[1] + "/out/report.md").read()
assert "clouds" in idiolect.data.describe_data() and "ladder" in idiolect.graphs.GRAPHS
for words in ("methods halfway", "data clouds", "models one-number", "data", "models"):
    app(["list", *words.split()], standalone_mode=False)
try:
    app(["compare", "--data", "cloud", "--methods", "local"])
except idiolect.ConfigError as error:
    print(error)
"""


@pytest.mark.second
def test_a_new_method_metric_data_set_model_graph_or_section_is_one_file(tmp_path):
    """Its file in the folder is all: exports, cards, the site's navigation, lists, help and commands know it."""
    for folder, name, text in (
        ("algorithms", "halfway", METHOD),
        ("metrics", "misses", METRIC),
        (
            "data.sets",
            "clouds",
            DATA.replace("\ndef", '\nfrom idiolect.core.plugins import named\n\n\n@named("clouds")\ndef'),
        ),
        ("models", "one_number", MODEL),
        ("graphs", "ladder", GRAPH),
        ("report.sections", "sizes", SECTION),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", FOUND, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "JAX_NUM_CPU_DEVICES": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the length of a client's step" in done.stdout
    assert done.stdout.count("Two clouds of points per client.") == 2  # its page, and the list
    assert "It has no settings." in done.stdout
    assert done.stdout.count("one number for every class") == 2
    assert "unknown data set 'cloud'; did you mean 'clouds'" in done.stdout
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| misses |" in report
    assert "| halfway |" in report


def test_the_stub_for_type_checkers_is_that_of_today():
    from docs.make.stub import FILE, stub

    assert FILE.read_text(encoding="utf-8") == stub()
