"""One device, eight forced ones and two real processes: the same federation."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.client import span
from idiolect.runtime import devices
from idiolect.runtime.devices import Devices, default_block, map_blocks, sum_blocks
from idiolect.runtime.distributed import COORDINATOR, PROCESS, PROCESSES, free_port
from tests.engine import devices_flags, python
from tests.on_devices import BOTH, EVALUATED, EXACT, METHODS, SAMPLINGS, exact, numbers, together
from tests.tiers import second

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def alone():
    return numbers()


def child(file, samplings, names, **environment):
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.on_devices", str(file), ",".join(samplings), ",".join(names)],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def kept(file, *children):
    for process in children:
        output, _ = process.communicate(timeout=500)
        assert process.returncode == 0, output.decode()[-3000:]
    with np.load(file) as found:
        return {name: found[name] for name in found.files}


def assert_same(found, alone, methods=METHODS):
    assert len(alone) == 3 * len(methods) + len({*BOTH} & {*methods}) + 1
    for name in found.keys() - {"devices", "processes"}:
        np.testing.assert_allclose(found[name], alone[name], rtol=1e-5, atol=2e-6, err_msg=name)


@pytest.mark.second
def test_exact_steps_are_in_the_span_of_the_samples(alone, monkeypatch):
    monkeypatch.setattr(span, "SMALLEST", 10**12)
    plain = exact()
    np.testing.assert_allclose(alone[EXACT], plain, atol=1e-5)
    assert alone[EXACT].tobytes() != plain.tobytes()


@pytest.mark.second
@pytest.mark.parametrize("methods", [BOTH[1:], METHODS])
def test_eight_devices_are_one(tmp_path, methods):
    """Cohorts of 5 and of 1 to 7 clients, of 7, on 8 devices: some devices have nothing to do."""
    file = tmp_path / "eight.npz"
    found = kept(file, child(file, SAMPLINGS, methods, XLA_FLAGS=devices_flags(8)))
    expected = numbers(methods=methods)
    assert (found["devices"], found["processes"]) == (8, 1)
    assert found.keys() >= expected.keys()
    assert_same(found, expected, methods)


@pytest.mark.second
@pytest.mark.parametrize(("sampling", "each"), [("fixed", 4), ("binomial", 2)])
def test_devices_that_compute_a_client_together_are_one(tmp_path, sampling, each):
    """Two clients on eight devices: four for each; 3.5 expected clients: two for each."""
    file = tmp_path / "found.npz"
    found = kept(file, child(file, ["together"], [sampling], XLA_FLAGS=devices_flags(8)))
    expected = together(sampling)
    assert found.keys() - {"devices", "processes"} == expected.keys()
    for name, value in expected.items():
        if name.endswith("devices"):
            assert (int(value), int(found[name])) == (1, each)
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=2e-6, err_msg=name)


@pytest.mark.second
def test_two_processes_are_one(tmp_path, alone):
    address = f"127.0.0.1:{free_port()}"
    file, two = tmp_path / "two.npz", {COORDINATOR: address, PROCESSES: "2"}
    both = [child(file, [EVALUATED], METHODS, **two, **{PROCESS: str(number)}) for number in (0, 1)]
    found = kept(file, *both)
    assert (found["devices"], found["processes"]) == (2, 2)
    assert len(found) == 2 + 3 * len(METHODS) + 1
    assert_same(found, alone)


def test_on_one_device_nothing_is_added():
    one = Devices(jax.devices()[:1])
    value = {"a": np.ones(3), "b": None}
    assert one.everywhere is None
    assert one.place(value) is value
    assert one.map(lambda seen, x: seen + x, 1, np.arange(3)).tolist() == [1, 2, 3]


def test_one_process_agrees_with_itself():
    assert devices.is_leader()
    assert devices.agreed_text("cohort") == "cohort"
    assert devices.agreed(np.asarray(3)) == 3


DIVIDED = """
import jax, numpy as np
from idiolect.runtime.devices import Devices
two = Devices()
rows = {"x": np.arange(8.0).reshape(4, 2), "key": jax.random.split(jax.random.key(0), 4)}
placed = two.divide(rows)
print([part.data.tolist() for part in placed["x"].addressable_shards])
print(bool((jax.random.key_data(placed["key"]) == jax.random.key_data(rows["key"])).all()), end=" ")
print(len(placed["key"].addressable_shards), *two.filled(3), *two.filled(4), *two.filled(1))
"""


def test_rows_are_divided_and_the_last_one_fills_up():
    lines = printed(DIVIDED, XLA_FLAGS=devices_flags(2)).splitlines()
    assert lines == ["[[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]]", "True 2 0 1 2 2 0 1 2 3 0 0"]


PARTS = """
from idiolect.runtime.devices import Devices
for clients, rows in [(1, 64), (3, 64), (3, 5), (3, 3), (3.5, 64), (9, 64)]:
    chosen = Devices(rows=clients, gradient=(rows, 5e7))
    print(len(chosen), *(chosen.together or ())[1:], len(chosen.all), len(chosen.apart), sep=",", end=" ")
"""


def test_where_there_are_more_devices_than_clients_several_compute_one_if_it_has_enough_operations():
    """On 8, with 50 million operations a row: 16 rows are worth 8 devices, 5 rows two, 3 rows one."""
    found = printed(PARTS, XLA_FLAGS=devices_flags(8)).split()
    assert found == ["1,8,16,8,8", "3,2,4,6,6", "3,2,4,6,6", "3,3,3", "4,2,4,8,8", "5,5,5"]


CORES = """
import os, jax, numpy as np, idiolect
os.environ.pop("XLA_FLAGS")
first = idiolect.use_cores(3)
again = idiolect.use_cores(3)
devices = idiolect.runtime.devices.Devices()
samples = jax.device_put(np.arange(10_000.0))
shared = devices.share({"x": samples, "n": 2})
where = {part.data.unsafe_buffer_pointer() for part in shared["x"].addressable_shards}
assert where == {samples.unsafe_buffer_pointer()}, where
copied = devices.place(samples)
assert len({part.data.unsafe_buffer_pointer() for part in copied.addressable_shards}) == 3
used = [len(idiolect.runtime.devices.Devices(rows=rows)) for rows in (1, 2, 3, 4, 5.5, 7)]
try:
    idiolect.use_cores(2)
except idiolect.ConfigError as error:
    are, flags = idiolect.runtime.devices.are_cores(), "XLA_FLAGS" in os.environ
    print(first, again, jax.device_count(), *used, are, flags, error, sep=";")
"""


def printed(program, **environment):
    done = python("-c", program, **environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_cores_are_devices_that_read_one_copy_and_no_more_of_them_than_help():
    """Of 3: one client needs 1, four clients are two and two on 2, six (5.5 expected) two on each of 3."""
    numbers, error = printed(CORES).rsplit(";", 1)
    assert numbers == "3;3;3;1;2;3;2;3;3;True;False"  # the last: flags that were not set are not set afterwards
    assert "comes too late" in error


@pytest.mark.parametrize(
    "environment", [{"JAX_NUM_CPU_DEVICES": "2"}, second({"XLA_FLAGS": "--xla_force_host_platform_device_count=2"})]
)
def test_devices_that_were_chosen_otherwise_stay(environment):
    program = (
        "import jax, idiolect; print(idiolect.use_cores(5), jax.device_count(), idiolect.runtime.devices.are_cores())"
    )
    assert printed(program, **environment) == "2 2 False"


UNEVEN = """
import os, time, jax, jax.numpy as jnp, numpy as np, idiolect.runtime.devices
{}
idiolect.use_cores(2)
devices = idiolect.runtime.devices.Devices()

def slow(row):
    time.sleep(4 * float(row))
    return row

def program(rows):
    one = lambda row: jax.pure_callback(slow, jax.ShapeDtypeStruct((), jnp.float32), row)
    return devices.map(lambda _, rows: jax.lax.map(one, rows), None, rows).sum()

print(float(jax.jit(program)(devices.place(np.asarray([0.0, 1.0], np.float32)))), os.environ.get("XLA_FLAGS"))
"""
LIMITS = ("xla_cpu_collective_call_warn_stuck_timeout_seconds", "xla_cpu_collective_call_terminate_timeout_seconds")


@pytest.mark.second
def test_a_core_waits_for_another_as_long_as_it_takes():
    """One device has nothing to do, the other takes 4 s; limits of 1 and 2 s would end the process."""
    ended = python("-c", UNEVEN.format(f"idiolect.runtime.devices.WAITING = dict(zip({LIMITS}, (1, 2)))"))
    assert ended.returncode != 0
    assert "Termination timeout" in ended.stderr
    assert min(devices.WAITING[name] for name in LIMITS) >= 24 * 3600


@pytest.mark.second
def test_limits_that_were_chosen_otherwise_stay():
    """And what XLA_FLAGS holds stays what it was: it names programs in a cache, and other libraries read it."""
    own = f"--{LIMITS[0]}=1 --{LIMITS[1]}=6"
    ended = python("-c", UNEVEN.format(""), XLA_FLAGS=own)
    assert ended.stdout.split() == ["1.0", *own.split()], ended.stderr[-2000:]
    assert "waiting" in ended.stderr
    assert "Termination" not in ended.stderr


@pytest.mark.second
def test_a_flag_that_this_xla_does_not_know_is_left_out():
    """XLA ends the process at an unknown flag; the other flags are still read."""
    names = (*LIMITS, "xla_no_such_flag")
    ended = python("-c", UNEVEN.format(f"idiolect.runtime.devices.WAITING = dict(zip({names}, (1, 6, 1)))"))
    assert ended.stdout.split() == ["1.0", *os.environ["XLA_FLAGS"].split()], ended.stderr[-2000:]
    assert "waiting" in ended.stderr


def test_compiler_options_are_those_that_this_xla_knows(monkeypatch):
    monkeypatch.setattr(devices, "QUICK", {"xla_no_such_flag": True, "xla_backend_optimization_level": 1})
    devices._known.cache_clear()
    known = devices.known_flags([f"--{name}={value}" for name, value in devices.IN_ORDER.items()], None)
    in_order = devices.IN_ORDER if known else {}  # jaxlib 0.8.1 does not know it
    assert devices.compiler_options(1) == {}
    assert devices.compiler_options(2) == in_order
    assert devices.compiler_options(1, quick=True) == {"xla_backend_optimization_level": 1}
    assert devices.compiler_options(2, quick=True) == {"xla_backend_optimization_level": 1, **in_order}
    monkeypatch.setattr(devices, "IN_ORDER", {"xla_cpu_scheduler_type": "CPU_NO_SUCH_TYPE"})
    devices._known.cache_clear()
    assert devices.compiler_options(2) == {}
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert devices.compiler_options(2, quick=True) == {}
    devices._known.cache_clear()


X, Y = jnp.arange(24.0).reshape(12, 2), jnp.arange(12)


def one(x, y):
    return {"sum": x.sum() * y, "rows": x + y}


def loops(block, rows):
    """The length of every loop that the map compiles to."""
    traced = jax.make_jaxpr(lambda *arguments: map_blocks(one, block, *arguments))(X[:rows], Y[:rows])
    return [equation.params["length"] for equation in traced.eqns if equation.primitive.name == "scan"]


@pytest.mark.parametrize("rows", [1, 7, 12])
@pytest.mark.parametrize("block", [0, 1, 2, 5, 7, 12, 100])
def test_the_result_is_the_same_in_blocks_of_any_size(block, rows):
    mapped = map_blocks(one, block, X[:rows], Y[:rows])
    np.testing.assert_array_equal(mapped["sum"], X[:rows].sum(axis=1) * Y[:rows])
    np.testing.assert_array_equal(mapped["rows"], X[:rows] + Y[:rows, None])


@pytest.mark.parametrize(
    ("block", "rows", "expected"),
    [
        (0, 12, []),
        (12, 12, []),
        (13, 12, []),
        (1, 1, []),
        (1, 12, [12]),
        (4, 12, [3]),
        (6, 12, [2]),
        (5, 12, [3]),  # 4 divides 12, and is more than half of 5
        (7, 12, [2]),
        (8, 12, [2]),
        (3, 7, [2]),  # neither 3 nor 2 divides 7: two blocks, and the remainder
        (2, 7, [3]),
    ],
)
def test_how_many_blocks_there_are_one_after_the_other(block, rows, expected):
    assert loops(block, rows) == expected


@pytest.mark.parametrize("rows", [1, 7, 12])
@pytest.mark.parametrize("block", [0, 1, 2, 5, 7, 100])
def test_a_sum_over_blocks_is_that_of_all_rows(block, rows):
    def two(x, y):
        return one(x, y), x * y

    total, kept = sum_blocks(two, block, X[:rows], Y[:rows])
    assert int(total["sum"]) == int((X[:rows].sum(axis=1) * Y[:rows]).sum())
    np.testing.assert_array_equal(total["rows"], (X[:rows] + Y[:rows, None]).sum(axis=0))
    np.testing.assert_array_equal(kept, X[:rows] * Y[:rows, None])


def test_block_0_runs_the_rows_one_by_one_unbatched():
    shapes, values = [], []

    def seen(x, y):
        shapes.append(x.shape)
        values.append(float(y))
        return x.sum()

    map_blocks(seen, 0, X[:3], Y[:3])
    assert shapes == [(2,)] * 3
    assert values == [0, 1, 2]


@pytest.mark.parametrize(("sizes", "block"), [((5_000,), 8), ((2_000, 3_000), 8), ((2_000, 3_001), 1), ((9_000,), 1)])
def test_small_models_are_mapped_together(sizes, block):
    assert default_block(sum(sizes)) == block
