"""Fixtures shared by all tests; every function of the package is type- and shape-checked while they run."""

from collections.abc import Iterator

from jaxtyping import install_import_hook

import tests.checking  # noqa: F401  the hook below looks it up by name

install_import_hook("idiolect", "tests.checking.checked")

import jax  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision inside one test."""
    with jax.enable_x64(True):
        yield
