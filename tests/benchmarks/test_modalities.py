"""The two systems of W9 do equal work: from one start they make one result."""

import pytest

pytest.importorskip("torch", reason="the extra `bench` is not installed")

from benchmarks.modalities import Both, gap


def test_the_loop_makes_what_idiolect_makes() -> None:
    worst, moved = gap(Both({"channels": [4, 4, 4], "features": 5}, 2, 40, alike=True, names=("accelerometer",)))
    assert worst < moved / 100
    assert moved > 1e-3
