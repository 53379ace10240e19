"""What a check finds, and what becomes of a system that is not there."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import runner
from benchmarks.beginning import beginning
from benchmarks.child import Absent, Child
from benchmarks.oracle import distance
from benchmarks.peers import BEFORE, OWN, SYSTEMS, Peer, missing
from benchmarks.report import COLUMNS, row
from benchmarks.runner import Comparison, Measured, Runner, below
from benchmarks.workloads import named, smaller


def comparison(own: list[float], torch: Measured) -> Comparison:
    return Comparison(named("W1"), [Measured(OWN, own), torch], {"gemm": 100.0})


def test_a_ratio_is_of_medians() -> None:
    assert comparison([1.0, 2.0, 9.0], Measured("torch", [8.0, 6.0, 1.0])).ratio("torch") == 3.0


@pytest.mark.parametrize(("repeats", "places"), [(5, None), (6, (0, 5)), (8, (0, 7)), (9, (1, 7)), (25, (7, 17))])
def test_the_interval_of_a_ratio_is_that_of_the_sign_test(repeats: int, places: tuple[int, int] | None) -> None:
    ratios = np.random.default_rng(0).permutation(repeats) + 1.0  # of equal place and value, less one
    own = [2.0 + repeat for repeat in range(repeats)]
    found = comparison(own, Measured("torch", [*(ratios * own)])).interval("torch")
    assert found == (None if places is None else pytest.approx([place + 1 for place in places]))


@pytest.mark.parametrize(
    ("torch", "finds"),
    [
        (Measured("torch", [3.0], distance=1e-6), ""),
        (Measured("torch", [2.9], distance=1e-6), "2.90 times as fast as torch"),
        (Measured("torch", skipped="not installed: torch"), "torch did not run"),
        (Measured("torch", [3.0], distance=2e-4), "the result of torch is 2.0e-04"),
        (Measured("torch", [3.0], distance=float("nan")), "the result of torch is nan"),
    ],
)
def test_a_check_finds(torch: Measured, finds: str) -> None:
    found = below([comparison([1.0], torch)], {"W1": {"torch": 3.0}})
    assert len(found) == bool(finds)
    assert finds in "".join(found)


def test_results_of_other_shapes_are_infinitely_far() -> None:
    assert distance([np.zeros(2)], [np.zeros(3)]) == float("inf")
    assert distance([np.array([0.0, 3.0])], [np.array([0.5, 3.0])]) == pytest.approx(0.5 / 3)


def test_a_system_that_is_not_installed_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "nobody", Peer("benchmarks.peers.nobody", ("json", "no_such_package")))
    assert missing("nobody") == "no_such_package"


def test_a_skipped_system_stays_in_the_table() -> None:
    skipped = Measured("torch", skipped="not installed: torch")
    assert row(comparison([1.0], skipped), skipped) == ["W1", "torch", "skipped: not installed: torch"]


def test_a_row_has_the_ratio_and_its_interval() -> None:
    torch = Measured("torch", [3.0, 8.0, 3.0, 4.0, 4.0, 2.0], [1.0] * 6)
    own = Measured(OWN, [1.0, 2.0, 1.0, 2.0, 1.0, 1.0], [1.0] * 6)
    shown = row(Comparison(named("W1"), [own, torch], {}), torch)
    assert shown[COLUMNS.index("ratio")] == "3.50"
    assert shown[COLUMNS.index("95 %")] == "2.00-4.00"


@pytest.mark.second
def test_a_child_runs_rounds_and_hands_over_what_they_made(tmp_path: Path) -> None:
    work = smaller(named("W3"))
    start = tmp_path / "beginning.npz"
    given = beginning(work, 2)
    given.save(start)
    child = Child(OWN, "W3", start, quick=True)
    try:
        assert min(child.rounds(2)) > 0
        result, _ = child.result()
    finally:
        child.close()
    assert [array.shape for array in result] == [weight.shape for weight in given.weights]
    assert 1e-3 < distance(result, given.weights) < 1


def test_a_child_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="No such file"):
        Child(OWN, "W3", tmp_path / "nothing.npz", quick=True, python=sys.executable)


def test_another_checkout_is_run_in_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "worker.py").write_text(
        "import json, os, pathlib, sys\n"
        "print(json.dumps({'ready': True}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    here = os.environ['PYTHONPATH'] == str(pathlib.Path.cwd() / 'src')\n"
        "    print(json.dumps({'seconds': 1.0 if here else 2.0, 'cpu': len(sys.argv)}), flush=True)\n"
    )
    child = Child(OWN, "W3", tmp_path / "beginning.npz", quick=True, checkout=tmp_path)
    assert child.rounds(1) == (1.0, 5)
    child.close()


@pytest.mark.second
def test_the_commit_before_is_timed_beside_ours_under_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, Path | None]] = []

    class Still(Child):
        def __init__(self, system: str, *_: object, checkout: Path | None = None, **__: object) -> None:
            started.append((system, checkout))
            if system != OWN:
                raise Absent("not installed")
            self.checkout = checkout

        def rounds(self, count: int) -> tuple[float, float]:
            return (2.0 if self.checkout else 1.0), 1.0

        def memory(self) -> float | None:
            return None

        def close(self) -> None:
            pass

    monkeypatch.setattr(runner, "Child", Still)
    earlier = Path("earlier")
    timed = Runner(2, True, {}, lambda _: None, earlier).timed(smaller(named("W3")))
    assert started[:2] == [(OWN, None), (OWN, earlier)]
    assert timed.ratio(BEFORE) == 2.0
    names = [measured.system for measured in Runner(1, True, {}, lambda _: None).timed(smaller(named("W3"))).systems]
    assert BEFORE not in names
