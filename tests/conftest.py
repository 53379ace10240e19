"""Fixtures shared by all tests, and what a run of them chooses: a tier, a share of the files, checks of types."""

import ctypes
import functools
import gc
import os
import runpy
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Nearly all the time of the tests is XLA's: what one has compiled, no other test, worker, program or later run of the
# tests compiles again. A program's name in the folder is a hash of all that it is made from.
LEADS = "PYTEST_XDIST_WORKER" not in os.environ
LARGEST = 2_000_000_000  # bytes of the folder, beyond which it is emptied before the tests
if LEADS:
    cache = Path(__file__).parents[1] / ".pytest_cache" / "compiled"
    if cache.is_dir() and sum(file.stat().st_size for file in cache.iterdir()) > LARGEST:
        shutil.rmtree(cache)
    cache.mkdir(parents=True, exist_ok=True)
    folder = str(cache)
    # What one process has compiled of Python, workers and the commands of the tests read, too.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # Programs that run for milliseconds need no expensive optimisation: half of what the tests would take. Not every
    # XLA knows every flag, and it ends the process at an unknown one.
    known_flags = runpy.run_path(str(Path(__file__).parents[1] / "src/idiolect/runtime/xla_flags.py"))["known_flags"]
    flags = known_flags(
        [
            "--xla_backend_optimization_level=0",
            "--xla_llvm_disable_expensive_passes=true",
            "--xla_cpu_use_fusion_emitters=false",
            "--xla_cpu_parallel_codegen_split_count=1",
        ],
        cache,
    )
    os.environ |= {
        "IDIOLECT_CACHE": folder,
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.01",  # below it, to keep a program takes longer
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",  # programs need not know which line of Python each operation is from
        "OPENBLAS_NUM_THREADS": "1",  # the workers share the cores; waiting threads of numpy's would take them
        "XLA_FLAGS": " ".join([*os.environ.get("XLA_FLAGS", "").split(), *flags]),
    }

import pytest  # noqa: E402

from tests.tiers import LONG, LONGEST_SECOND, share, share_name  # noqa: E402

# JAX and idiolect are imported where they are used: the process that only starts the workers needs neither.
if TYPE_CHECKING:
    from idiolect.data.federated import FederatedData

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Bytes of a process beyond which its compiled programs are dropped between two files: a third of the memory,
# divided by the workers, within these limits. At 4 GB a process has 25,000 mappings, of the 65,530 that Linux allows.
LEAST, MOST = 1_500_000_000, 4_000_000_000
ROOM = 1_000_000_000  # bytes that it may grow after that before they are dropped again: not all memory is given back
full = 0


@pytest.fixture(scope="session", autouse=True)
def one_device() -> None:
    """JAX has its one device before a command asks for one a core, whichever test comes first in a process."""
    import jax

    jax.devices()


@pytest.fixture(scope="session", autouse=True)
def one_context() -> None:
    """A thread writes all its programs in one MLIR context: JAX makes one for each, which takes most of the time."""
    from jax._src.interpreters import mlir

    make, kept = getattr(mlir, "make_ir_context", None), threading.local()

    def context() -> Any:
        if not hasattr(kept, "context"):
            kept.context = make()
        return kept.context

    if make:
        mlir.make_ir_context = context


@pytest.fixture(scope="session", autouse=True)
def rare_garbage(one_device: None) -> None:
    """What is imported stays: Python's collector does not look at it, and at the rest less often than by default."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision inside one test."""
    import jax

    with jax.enable_x64(True):
        yield


@pytest.fixture
def monkeypatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """As pytest's own; programs compiled with what is replaced are forgotten, before and after."""
    from idiolect.runtime import compiled

    replace, replaced = monkeypatch.setattr, list[str]()

    def setattr_(target: Any, *arguments: Any, **options: Any) -> None:
        place = target if isinstance(target, str) else getattr(target, "__name__", type(target).__module__)
        if place.partition(".")[0] not in sys.stdlib_module_names:  # no program is made from sys.argv
            replaced.append(place)
            compiled.forget()
        replace(target, *arguments, **options)

    monkeypatch.setattr = setattr_
    yield monkeypatch
    if replaced:
        compiled.forget()


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def commandline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command line, as a person sees it: (exit code, stdout, stderr)."""

    from idiolect.cli import main as cli

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["idiolect", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    """Methods that a test or an example of a page registers are forgotten after it."""
    from idiolect.algorithms.registry import ALGORITHMS

    before = dict(ALGORITHMS)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(before)


@pytest.fixture(scope="session")
def three_clients() -> "FederatedData":
    """24, 40 and 31 samples of four features and three classes, each client's by a linear model of its own."""
    import numpy as np

    from idiolect.data import from_arrays

    rng, parts = np.random.default_rng(0), {}
    for i, n in enumerate((24, 40, 31)):
        x = rng.normal(size=(n, 4)).astype("f4")
        parts[f"c{i}"] = x, (x @ rng.normal(size=(4, 3))).argmax(axis=1)
    return from_arrays(parts, validation=0.25)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """The options of the tests. Checks of types begin before another conftest.py imports the package."""
    parser.addoption("--tier", default="all", choices=["first", "all"], help="the first tier of the tests, or both")
    parser.addoption("--share", type=share_name, metavar="K/N", help="only every N-th file, from the K-th on")
    parser.addoption("--without-share", type=share_name, metavar="K/N", help="all files but every N-th")
    parser.addoption("--unchecked", action="store_true", help="without checks of types and shapes: in less time")
    config = pluginmanager.getplugin("pytestconfig")
    # No options are parsed yet, but a worker's come from the process that has started it.
    given = [*config.invocation_params.args, *os.environ.get("PYTEST_ADDOPTS", "").split()]
    if "--unchecked" not in given and not getattr(config.option, "unchecked", False):
        check_types()


def check_types() -> None:
    """Let each function of the package check types and shapes, before anything imports it."""
    from jaxtyping import install_import_hook

    import tests.checking  # noqa: F401  the hook looks it up by name

    install_import_hook("idiolect", "tests.checking.checked")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that are not in the share, before they are imported."""
    only, without = config.getoption("--share"), config.getoption("--without-share")
    if collection_path.is_dir() or not (only or without):
        return None
    return str(collection_path) not in chosen_files(only, without) or None


@functools.cache
def chosen_files(only: str | None, without: str | None) -> set[str]:
    """The test files of one share, or of all but one."""
    files = sorted(str(path) for path in Path(__file__).parent.rglob("test_*.py"))
    return share(files, only) - (share(files, without) if without else set())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tier; long files come first, so that no worker ends long after the others."""
    if config.getoption("--tier") == "first":
        dropped = [item for item in items if item.get_closest_marker("second")]
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if not item.get_closest_marker("second")]
    long = LONG if config.getoption("--tier") == "first" else (*LONGEST_SECOND, *LONG)
    items.sort(key=lambda item: item.nodeid.partition("::")[0].removeprefix("tests/") not in long)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Between two files, drop what has been compiled where it fills the memory; the folder above still has it."""
    global full
    if nextitem is None or nextitem.path == item.path or "jax" not in sys.modules:
        return
    full = full or share_of_memory()
    if resident() < full:
        return
    if own := sys.modules.get("idiolect.runtime.compiled"):
        own.forget()
    sys.modules["jax"].clear_caches()
    gc.collect()
    with suppress(OSError, AttributeError):  # elsewhere than with glibc
        ctypes.CDLL(None).malloc_trim(0)  # freed pages stay with the process otherwise
    full = max(share_of_memory(), resident() + ROOM)


def share_of_memory() -> int:
    """Bytes that a worker may have before its compiled programs are dropped."""
    from idiolect.core.memory import machine_memory

    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return min(MOST, max(LEAST, (machine_memory() or 0) // (3 * workers)))


def resident() -> int:
    """Bytes of memory that this process has; 0 where the system does not say."""
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if file.is_file() else 0


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One headless Chromium for all tests of pages; they are skipped without one."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'"
    )
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()
