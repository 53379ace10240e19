"""Metrics for Prometheus, on 127.0.0.1 only, for whoever asks for them with --metrics PORT."""

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from idiolect.core.errors import StoreError, reason_of, require

ADDRESS = "127.0.0.1"


@dataclass(frozen=True)
class Measure:
    """One metric. values: one for each value of the label; without a label the key is "". counter: it only grows."""

    name: str
    help: str
    values: Mapping[str, float]
    label: str = ""
    counter: bool = False


def check_metrics() -> None:
    """Raise `ConfigError` if the library is not installed."""
    require(find_spec("prometheus_client") is not None, "--metrics needs: pip install 'idiolect[metrics]'")


@contextmanager
def serving(port: int, read: Callable[[], Iterable[Measure]]) -> Generator[None]:
    """Serve metrics on a port of this machine inside the block.

    Args:
        port: 1 to 65535.
        read: called at each request for the metrics.

    Raises:
        ConfigError: if the library is not installed.
        StoreError: if the port is taken.
    """
    check_metrics()
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    class Collector:
        """Reads at each request."""

        def collect(self) -> Generator[Any]:
            """One family per measure."""
            for measure in read():
                labels = [measure.label] if measure.label else []
                cls = CounterMetricFamily if measure.counter else GaugeMetricFamily
                family = cls(f"idiolect_{measure.name}", measure.help, labels=labels)
                for key, value in measure.values.items():
                    family.add_metric([key] if measure.label else [], float(value))
                yield family

        def describe(self) -> list[Any]:
            """Nothing: else the library would read once at the start."""
            return []

    registry = CollectorRegistry()
    registry.register(Collector())  # pyright: ignore[reportArgumentType]
    try:
        server, thread = start_http_server(port, addr=ADDRESS, registry=registry)
    except (OSError, OverflowError) as error:
        refused = f"cannot listen on {ADDRESS}:{port} ({reason_of(error)})"
        raise StoreError(f"--metrics {port}: {refused}; name another port") from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def memory_of(pid: int | None) -> float:
    """Bytes of memory of a process and of all that it has started: private pages and its share of the common ones.

    0 if there is no such process.
    """
    import psutil

    total = 0.0
    try:
        processes = [] if pid is None else [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0.0
    for process in processes:
        try:
            total += float(getattr(process.memory_full_info(), "pss", 0.0))
        except psutil.Error:
            continue
    return total
