"""The two tiers of the tests: `make test` runs the first, `make test-all` both.

The second tier (`pytest.mark.second`) has what takes long: proofs of the first on more methods, settings or devices,
and faults of processes and disks. `.ci/run` runs both tiers of a tenth of the files, the next tenth with each commit,
and the first tier of all others.
"""

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

REPRESENTATIVE = ("fedavg", "fedu", "pfedme", "pflego", "scaffold")
"""No private state; a graph; personal models; private heads; a server with a state of each client."""
LONG = (
    "docs/test_site.py",
    "deploy/test_transport.py",
    "runtime/test_devices.py",
    "study/run/test_engine.py",
    "cli/test_many_bad_inputs.py",
    "cli/test_site.py",
    "study/search/test_engine.py",
    "docs/test_blocks.py",
    "runtime/test_program.py",
    "api/test_run.py",
    "cli/test_main.py",
    "deploy/nvflare/test_roles.py",
    "report/html/test_page_in_browser.py",
)
"""Files that begin first, so that no worker ends long after the others."""
LONGEST_SECOND = (
    "deploy/hub/test_lies.py",
    "algorithms/test_boosted_intercept.py",
    "deploy/hub/test_honest.py",
    "runtime/test_devices.py",
    "deploy/test_transport.py",
    "deploy/test_four_hospitals.py",
    "docs/test_blocks.py",
    "docs/test_site.py",
    "deploy/nvflare/test_networks.py",
    "algorithms/parts/test_private_trees.py",
    # The lighter ones of the second ten are with the heavier ones of the first.
    "deploy/attacks/test_settings.py",
    "deploy/hub/test_rounds.py",
    "deploy/nvflare/test_limits.py",
    "deploy/nvflare/test_revocation.py",
    "api/test_estimators.py",
    "api/test_combined_estimators.py",
    "cli/test_queries.py",
    "deploy/nvflare/test_roles.py",
    "runtime/test_newcomers.py",
    "deploy/attacks/test_liar.py",
)
"""Files whose tests take long: two in each of ten shares, the first of each ten in share 0."""


def by_method(names: Iterable[str], first: Sequence[str] = REPRESENTATIVE) -> list[Any]:
    """Parameters of a test of every method: the representative ones in the first tier, all others in the second."""
    return [name if name in first else second(name) for name in names]


def second(*values: Any) -> Any:
    """One case of a parametrized test, in the second tier: the other cases prove the same in the first."""
    return pytest.param(*values, marks=pytest.mark.second)


def share_name(text: str) -> str:
    """The value of `--share`. Raises `ArgumentTypeError` if it is not K/N."""
    if not re.fullmatch(r"\d+/[1-9]\d*", text):
        raise ArgumentTypeError(f"'{text}' is not of the form K/N, as 3/10 for the fourth tenth of the files")
    return text


def share(files: Sequence[str], which: str | None) -> set[str]:
    """The files that `--share` names: all, or with "K/N" every N-th from the K-th on."""
    if which is None:
        return set(files)
    first, every = (int(part) for part in which.split("/"))
    longest = [file for end in LONGEST_SECOND for file in files if file.endswith(f"/{end}")]
    return set([*longest, *sorted({*files} - {*longest})][first % every :: every])
