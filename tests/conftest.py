"""Fixtures shared by all tests; every function of the package is type- and shape-checked while they run."""

import os
import shutil
import tempfile
from collections.abc import Iterator

# Nearly all the time of the tests is XLA's: what one has compiled, no other test, worker or started program compiles
# again. The folder is new in every run, and the workers get it from the process that starts them.
LEADS = "PYTEST_XDIST_WORKER" not in os.environ
if LEADS:
    folder = tempfile.mkdtemp(prefix="compiled-")
    os.environ |= {
        "IDIOLECT_CACHE": folder,
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }

from jaxtyping import install_import_hook  # noqa: E402

import tests.checking  # noqa: E402, F401  the hook below looks it up by name

install_import_hook("idiolect", "tests.checking.checked")

import jax  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision inside one test."""
    with jax.enable_x64(True):
        yield


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    if LEADS:
        shutil.rmtree(os.environ["IDIOLECT_CACHE"], ignore_errors=True)
