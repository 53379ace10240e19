"""The drill: the parts that sites play, what its checks find, and a small one over the real engine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nvflare")
pytest.importorskip("rocrate")

from benchmarks.drill.checks import CHECKS, crate_problems
from benchmarks.drill.drill import Drill
from benchmarks.drill.plan import EVENTS, FEWEST, SMALL, Cast, Size
from benchmarks.drill.services import environment
from idiolect.deploy.hub.crate import write_audit
from tests.deploy.federation import data_of, experiment_of, hub_of

LIMIT = 2400.0
"""Seconds for the small drill on a machine that others use, too."""


@pytest.mark.parametrize("sites", [FEWEST, 7, 10])
def test_each_part_has_a_site_of_its_own_and_three_honest_ones_are_left(sites: int) -> None:
    cast = Cast.of(sites)
    gone = {cast.leaver, cast.liar, cast.dropout, cast.revoked}
    assert cast.late not in gone
    assert len(gone) == (3 if sites == FEWEST else 4)
    assert len({*cast.sites} - gone) >= 3
    assert {*cast.parts} == {*gone, cast.late}


def test_each_event_is_a_step_of_the_drill_and_leaves_rounds_for_the_next() -> None:
    assert all(callable(getattr(Drill, name)) for _, name, _ in EVENTS)
    for size in (SMALL, Size()):
        after = [size.after(share) for share, _, _ in EVENTS]
        assert all(later - earlier >= 2 for earlier, later in zip(after, [*after[1:], size.rounds], strict=True))


@pytest.mark.second
def test_a_folder_in_use_and_a_drill_that_is_too_small_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments, message in (
        ([str(tmp_path)], "is not empty"),
        ([str(tmp_path / "new"), "--sites", "5"], "at least 6 sites"),
        ([str(tmp_path / "new"), "--rounds", "10"], "at least 30 rounds"),
        ([str(tmp_path / "new"), "--check"], "about.json"),
    ):
        code, _, err = drill(*arguments)
        assert (code, err.startswith("error: "), message in err, err.count("\n")) == (1, True, True, 1), err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_crate_with_a_changed_a_missing_and_a_new_file_has_problems(tmp_path: Path) -> None:
    out = tmp_path / "audit"
    write_audit(hub_of(tmp_path / "hub", experiment_of(["fedavg"]), data_of()), out)
    assert crate_problems(out) == []
    (out / "report.md").write_text("another")
    (out / "new.txt").write_text("new")
    (out / "differences.json").unlink()
    assert crate_problems(out) == [
        "new.txt is not described",
        "differences.json is not there",
        "report.md has another hash",
        "report.md has another size",
    ]


@pytest.mark.second
@pytest.mark.skipif(os.environ.get("IDIOLECT_LONG") != "1", reason="takes long: IDIOLECT_LONG=1 runs it")
def test_a_small_drill_ends_by_itself_and_all_is_as_it_must_be(tmp_path: Path) -> None:
    code, out, err = drill(str(tmp_path / "drill"), "--small")
    values = json.loads((tmp_path / "drill" / "drill.json").read_text()) if code == 0 else {}
    assert code == 0, out + err
    assert [check["name"] for check in values["checks"] if not check["good"]] == []
    assert len(values["checks"]) == len(CHECKS)
    events = [step["event"] for step in values["story"]]
    assert [name for name in events if name in {name for _, name, _ in EVENTS}] == [name for _, name, _ in EVENTS]


def drill(*arguments: str) -> tuple[int, str, str]:
    line = [sys.executable, "-m", "benchmarks.drill", *arguments]
    done = subprocess.run(
        line,
        env={**os.environ, **environment()},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    return done.returncode, done.stdout, done.stderr
