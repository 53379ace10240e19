"""One device, eight forced ones and two real processes: the same federation."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from idiolect import devices
from idiolect.devices import Devices
from idiolect.distributed import COORDINATOR, PROCESS, PROCESSES, free_port
from tests.engine import devices_flags
from tests.on_devices import EVALUATED, METHODS, SAMPLINGS, numbers

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def alone():
    return numbers()


def child(file, *samplings, **environment):
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.on_devices", str(file), *samplings],
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


def assert_same(found, alone):
    assert len(alone) == (len(SAMPLINGS) + 2) * len(METHODS)
    for name in found.keys() - {"devices", "processes"}:
        np.testing.assert_allclose(found[name], alone[name], rtol=1e-5, atol=2e-6, err_msg=name)


def test_eight_devices_are_one(tmp_path, alone):
    """Cohorts of 5 and of 1 to 7 clients, of 7, on 8 devices: some devices have nothing to do."""
    found = kept(tmp_path / "eight.npz", child(tmp_path / "eight.npz", *SAMPLINGS, XLA_FLAGS=devices_flags(8)))
    assert (found["devices"], found["processes"]) == (8, 1)
    assert found.keys() >= alone.keys()
    assert_same(found, alone)


def test_two_processes_are_one(tmp_path, alone):
    address = f"127.0.0.1:{free_port()}"
    both = [
        child(tmp_path / "two.npz", EVALUATED, **{COORDINATOR: address, PROCESSES: "2", PROCESS: str(number)})
        for number in (0, 1)
    ]
    found = kept(tmp_path / "two.npz", *both)
    assert (found["devices"], found["processes"]) == (2, 2)
    assert len(found) == 2 + 3 * len(METHODS)
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


CORES = """
import sys, jax, numpy as np, idiolect
first = idiolect.use_cores(3)
again = idiolect.use_cores(3)
devices = idiolect.devices.Devices()
samples = jax.device_put(np.arange(10_000.0))
shared = devices.share({"x": samples, "n": 2})
where = {part.data.unsafe_buffer_pointer() for part in shared["x"].addressable_shards}
assert where == {samples.unsafe_buffer_pointer()}, where
copied = devices.place(samples)
assert len({part.data.unsafe_buffer_pointer() for part in copied.addressable_shards}) == 3
used = [len(idiolect.devices.Devices(rows=rows)) for rows in (1, 2, 3, 4, 5.5, 7)]
try:
    idiolect.use_cores(2)
except idiolect.ConfigError as error:
    print(first, again, jax.device_count(), *used, idiolect.devices.are_cores(), error, sep=";")
"""


def printed(program, **environment):
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_cores_are_devices_that_read_one_copy_and_no_more_of_them_than_help():
    """Of 3: one client needs 1, four clients are two and two on 2, six (5.5 expected) two on each of 3."""
    numbers, error = printed(CORES).rsplit(";", 1)
    assert numbers == "3;3;3;1;2;3;2;3;3;True"
    assert "comes too late" in error


@pytest.mark.parametrize(
    "environment", [{"JAX_NUM_CPU_DEVICES": "2"}, {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}]
)
def test_devices_that_were_chosen_otherwise_stay(environment):
    program = "import jax, idiolect; print(idiolect.use_cores(5), jax.device_count(), idiolect.devices.are_cores())"
    assert printed(program, **environment) == "2 2 False"
