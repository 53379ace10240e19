"""Samples in a file: the bits of those in memory, little memory, and the rows of coming cohorts asked for in time."""

import gc
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.registry import build
from idiolect.core.memory import aligned_empty, is_mapped
from idiolect.data import FederatedData, FolderWriter, load_data
from idiolect.data.federated import SPLITS
from idiolect.runtime import ahead
from idiolect.runtime.ahead import Ahead
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.program import Program
from idiolect.runtime.simulate import Simulation
from idiolect.study.spec.assemble import problem_of
from tests.federations import bits
from tests.tiers import second

FEATURES, CLIENTS = 200, 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 clients of 300 to 339 rows: 10 MB."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "data"
    with FolderWriter(path, task="classification", classes=("no", "yes")) as out:
        for i in range(CLIENTS):
            x = rng.normal(size=(310 + i, FEATURES)).astype(np.float32)
            y = (x[:, 0] + rng.normal(size=len(x)) > 0).astype(int)
            out.add(f"c{i}", train=(x[10:], y[10:]), test=(x[:10], y[:10]))
    return path


def in_memory(data: FederatedData) -> FederatedData:
    splits = {}
    for name in SPLITS:
        split = data.stored(name)
        x = aligned_empty(split.x.shape)
        x[:] = split.x
        splits[name] = replace(split, x=x)
    return replace(data, **splits)


def simulation(data: FederatedData, method: str = "fedavg", **options: object) -> Simulation:
    problem = problem_of(data, {"name": "mlr", "init": "zeros"})
    algorithm = build({"name": method, "rate": 0.1, "local_steps": 3, "batch_size": 5})
    return problem.simulation(algorithm, **{"cohort": 4, **options})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("method", [second("fedavg"), "ditto"])
@pytest.mark.parametrize("sampling", [second("fixed"), "binomial"])
@pytest.mark.parametrize("window", [1, second(2**27)])
def test_rounds_have_the_bits_of_samples_in_memory(folder, tmp_path, monkeypatch, method, sampling, window):
    monkeypatch.setattr(ahead, "WINDOW", window)
    mapped = load_data(folder)
    sims = [simulation(data, method, sampling=sampling) for data in (mapped, in_memory(mapped))]
    assert [sim.ahead is None for sim in sims] == [False, True]
    states = [sim.advance(sim.advance(sim.init(3), 4), 3) for sim in sims]
    assert bits(states[0]) == bits(states[1])
    scores = [[one.pooled for one in Evaluator(sim)(state)] for sim, state in zip(sims, states, strict=True)]
    assert scores[0] == scores[1]
    by_rows = sims[0].advance(sims[0].init(3, rows=tmp_path / "rows"), 7)
    assert bits(replace(by_rows, private=None)) == bits(replace(states[0], private=None))


def test_a_program_of_one_run_asks_too(folder, monkeypatch):
    asked = list[object]()
    monkeypatch.setattr(Ahead, "_ask", lambda self, *given: asked.append(given[1:]))
    monkeypatch.setattr(ahead, "WINDOW", 1)
    sim = simulation(load_data(folder))
    program = Program([sim])
    states = program.start([sim], [0], [sim.params])
    program.advance([0], states, 3, program.capacity([0], 3))
    assert asked == [(0, 1, 4), (1, 2, 4), (2, 3, 4)]


@pytest.mark.parametrize("sampling", ["fixed", "binomial"])
def test_the_rows_of_the_cohorts_are_asked_for(folder, monkeypatch, sampling):
    """Every byte of the cohort's rows, and of nobody else's."""
    data = load_data(folder)
    sim = simulation(data, sampling=sampling)
    ranges = list[tuple[int, int]]()
    monkeypatch.setattr("os.posix_fadvise", lambda file, begin, size, what: ranges.append((begin, size)))
    monkeypatch.setattr(ahead, "_ASKED", 1000)
    found = Ahead.of(data.train, sim.sampling)
    assert found is not None
    state = sim.init(5)
    capacity = sim.sampling.capacity(state.seed, 4)
    found._ask(state.seed, 2, 4, capacity)
    wanted = np.zeros((folder / "train.x.npy").stat().st_size, bool)
    offset, row = data.train.x.offset, FEATURES * 4
    for round in (2, 3):
        ids, present = map(np.asarray, sim.sampling.draw(state.seed, round, capacity))
        for client in ids[present].tolist():
            begin, end = (offset + int(place) * row for place in data.train.offsets[client : client + 2])
            wanted[begin:end] = True
    asked = np.zeros_like(wanted)
    for begin, size in ranges:
        assert size <= 1000
        asked[begin : begin + size] = True
    np.testing.assert_array_equal(asked, wanted)


def test_nothing_is_asked_for_where_all_take_part_or_the_rows_are_in_memory(folder):
    data = load_data(folder)
    assert simulation(data, cohort=CLIENTS).ahead is None
    assert simulation(data, train="all").ahead is None
    assert is_mapped(data.train.x)
    assert not is_mapped(data.train.x[5:])
    assert not is_mapped(np.asarray(in_memory(data).train.x))


def test_a_fault_ends_the_windows(folder, monkeypatch):
    monkeypatch.setattr(ahead, "WINDOW", 1)
    sim = simulation(load_data(folder))
    state = sim.init(0)
    ends = list[int]()

    def until(state, end, capacity):
        ends.append(end)
        return replace(state, round=jnp.asarray(1, jnp.int32))

    assert sim.ahead is not None
    sim.ahead.run(until, state, 5, 4)
    assert ends == [1, 2]


def held() -> int:
    """Bytes that this process holds for itself, without garbage."""
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


@pytest.mark.second
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads what Linux says of memory")
def test_the_samples_are_not_copied(tmp_path):
    """64 MB of rows: training and scoring hold less than a quarter of that more than before."""
    rng = np.random.default_rng(0)
    with FolderWriter(tmp_path / "data", task="classification", classes=("no", "yes")) as out:
        for i in range(64):
            x = rng.standard_normal((1050, 250), np.float32)
            y = (x[:, 0] > 0).astype(int)
            out.add(f"c{i}", train=(x[50:], y[50:]), test=(x[:50], y[:50]))
    small = simulation(load_data(tmp_path / "data"))
    Evaluator(small)(small.advance(small.init(0), 2))  # what is compiled and kept
    del small
    before = held()
    sim = simulation(load_data(tmp_path / "data"))
    state = sim.advance(sim.init(0), 20)
    Evaluator(sim)(state, None, ("train", "test"))
    jax.block_until_ready(state.shared)
    assert held() - before < 16e6
