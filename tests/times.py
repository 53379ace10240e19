"""`pytest -p tests.times` writes what each test costs to times.csv: seconds of this process's and its children's
processor time, which other work on the machine does not change, and the megabytes that the process holds after it.
"""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

FILE = Path("times.csv")


def _spent() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """One line a test, of all workers."""
    before = _spent()
    result = yield
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    line = f'"{item.nodeid}",{_spent() - before:.3f},{pages * resource.getpagesize() >> 20}\n'
    with FILE.open("a") as file:
        file.write(line)
    return result
