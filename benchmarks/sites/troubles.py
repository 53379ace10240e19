"""Network cut, slow site, full disks, wrong clocks, doubled names, foreign certificates: each on a small run."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.sites.federation import data_of, experiment_of, run_id, run_same_participation
from benchmarks.sites.live import Live, Row, live
from benchmarks.sites.parity import same_states
from benchmarks.sites.who import member
from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.nvflare.kits import certificate
from idiolect.deploy.nvflare.local_federation import FOLDER, PROJECT, kits_here
from idiolect.deploy.nvflare.processes import free_port, running, start, stop
from idiolect.deploy.nvflare.provision import provision
from idiolect.deploy.nvflare.session import session
from idiolect.deploy.this_machine import prepare
from idiolect.study.spec.experiment import Experiment

RUN = run_id("scaffold")
CUT = 10.0
"""Seconds without a network."""
DEADLINE = 8.0
"""Of a round: a new trainer starts within it on a busy machine."""


def scaffold(rounds: int) -> Experiment:
    """A method with a shared state and private ones."""
    return experiment_of([{"name": "scaffold", "rate": 0.05}], rounds=rounds, eval_every=rounds)


def _equal(run: Live, experiment: Experiment, folder: Path) -> tuple[str, bool]:
    """Whether the states are those of an undisturbed run of the same participation."""
    other = run_same_participation(folder, run.place, experiment, data_of(3))
    shared, private = same_states(run.place, other, RUN)
    word = "equal in every bit to" if shared and private else "DIFFERENT FROM"
    return f"states {word} an undisturbed run of the same participation", shared and private


def _reasons(run: Live) -> str:
    found = [(n + 1, site, why) for n, missing in run.missing() for site, why in missing.items()]
    return "; ".join(f"round {n}: {site} {why}" for n, site, why in found[:4]) or "no answer was missing"


def cut(folder: Path) -> list[Row]:
    """The network is cut in the middle of a run."""
    experiment, pause, done = scaffold(60), list[float](), list[int]()

    def act(run: Live) -> None:
        run.after(10)
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        done.append(run.rounds())
        began = time.monotonic()
        try:
            time.sleep(CUT)
            done.append(run.rounds())
        finally:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        run.after(1)
        pause.append(time.monotonic() - began)

    run = live(folder / "cut", experiment, data_of(3), act, deadline=4.0, quorum=1, tries=10)
    told, same = _equal(run, experiment, folder / "undisturbed")
    jobs = sum("has started" in line for line in run.told)
    took = max(line["seconds"] for line in run.lines()[1:])
    seen = (
        f"cut in round {done[0] + 1} of 60, {done[1] - done[0]} rounds done without the network; deadline 4 s: the "
        f"round was called again until it had answers: it took {took:.1f} s in all and ended {pause[0]:.1f} s after "
        f"the cut; {_reasons(run)} in the call that counted; the run ended by itself, jobs: {jobs}; {told}"
    )
    return [Row(f"network cut for {CUT:g} s", seen, round(pause[0], 1), same and run.rounds() == 60)]


def slow(folder: Path) -> list[Row]:
    """A trainer stands still for longer than the deadline."""
    experiment, seconds, at = scaffold(30), list[float](), list[int]()

    def act(run: Live) -> None:
        run.after(5)
        (trainer,) = member(run.kits.sites["site-2"]).trainers
        os.kill(trainer, signal.SIGSTOP)
        began = time.monotonic()
        run.wait(lambda: any("site-2" in missing for _, missing in run.missing()))
        at.extend(n for n, missing in run.missing() if "site-2" in missing)
        run.wait(lambda: "site-2" in run.place.answered(RUN).get(at[0] + 1, []))
        seconds.append(time.monotonic() - began)
        try:
            os.kill(trainer, signal.SIGCONT)
        except ProcessLookupError:
            return  # its worker has ended it at the deadline

    run = live(folder / "slow", experiment, data_of(3), act, deadline=DEADLINE, quorum=1)
    told, same = _equal(run, experiment, folder / "undisturbed")
    rounds, answered = [n for n, _ in run.missing()], run.place.answered(RUN)
    back = bool(at) and "site-2" in answered.get(at[0] + 1, [])
    seen = (
        f"deadline {DEADLINE:g} s; {_reasons(run)}; it {'answered' if back else 'did NOT answer'} in the next round; "
        f"rounds without it: {len(rounds)} of 30; {told}"
    )
    return [Row("a trainer stands still", seen, round(seconds[0], 1), same and back and len(rounds) == 1)]


@contextmanager
def small_disk(path: Path, size: str) -> Generator[None]:
    """A disk of this size at `path` during the block."""
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> Path:
    """Fill the disk; the file that does."""
    filler = path / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler


def full_site(folder: Path) -> list[Row]:
    """No space for a site's private state, then space again."""
    out, experiment, seconds = folder / "full", scaffold(60), list[float]()
    kits = kits_here(out, prepare(out, experiment, data_of(3), deadline=DEADLINE, quorum=1), data_of(3))
    state, back = kits.sites["site-2"].site / "state", list[int]()

    def act(run: Live) -> None:
        run.after(5)
        filler = fill(state)
        run.wait(lambda: len(run.missing()) >= 3)
        filler.unlink()
        began, now = time.monotonic(), run.rounds()
        run.wait(lambda: any("site-2" in s for n, s in run.place.answered(RUN).items() if n >= now))
        seconds.append(time.monotonic() - began)
        back.append(run.rounds())

    with small_disk(state, "512k"):
        run = live(out, experiment, data_of(3), act, deadline=DEADLINE, quorum=1)
        told, same = _equal(run, experiment, folder / "undisturbed")
    rounds = {n for n, missing in run.missing() if "site-2" in missing}
    others = all({"site-1", "site-3"} <= {*sites} for sites in run.place.answered(RUN).values())
    seen = (
        f"{_reasons(run)} (and so in {len(rounds)} rounds); the others answered "
        f"{'all rounds' if others else 'NOT all rounds'}; it took part {seconds[0]:.1f} s after "
        f"there was space again; {told}"
    )
    return [Row("disk full at a site", _plain(seen, out), round(seconds[0], 1), same and others and bool(rounds))]


def full_hub(folder: Path) -> list[Row]:
    """No space for the hub's run folder, then space again."""
    out, experiment, seconds, line = folder / "full", scaffold(40), list[float](), list[str]()
    names = ["site-1", "site-2", "site-3"]
    provision(folder / "kits", PROJECT, names, free_port())

    def act(run: Live) -> None:
        run.after(5)
        filler = fill(out)
        before = len(run.told)
        began = time.monotonic()
        run.wait(lambda: len(run.told) > before)
        line.extend(run.told[before : before + 1])
        seconds.append(time.monotonic() - began)
        filler.unlink()

    with small_disk(out, "8m"):
        (out / FOLDER).symlink_to(folder / "kits")  # the kits, the sites' among them, lie on another disk
        run = live(out, experiment, data_of(3), act, deadline=DEADLINE, quorum=1)
        told, same = _equal(run, experiment, folder / "undisturbed")
        ended = run.rounds() == 40
    seen = f"the supervisor told: '{line[0] if line else ''}'; with space again the run went on to its end; {told}"
    return [Row("disk full at the hub", _plain(seen, out), round(seconds[0], 1), same and ended and bool(line))]


def _plain(text: str, out: Path) -> str:
    """A text without this machine's paths."""
    where = re.escape(str(out.absolute()))
    inside = re.sub(rf"{where}(/{FOLDER}/{PROJECT}/prod_00)?/", "", text)
    return re.sub(where, "FOLDER", inside)


def clock(folder: Path) -> list[Row]:
    """A clock that is wrong: the check that every start makes, at other times."""
    began = time.monotonic()
    kit = provision(folder, PROJECT, ["site-1"], free_port()).sites["site-1"]
    known, rows = certificate(kit), list[Row]()
    for what, now in (
        ("a day before the certificate", known.not_before - timedelta(days=1)),
        ("a day after its end", known.not_after + timedelta(days=1)),
    ):
        try:
            certificate(kit, now)
            line = ""
        except StoreError as error:
            line = _plain(str(error), folder).replace(f"{PROJECT}/prod_00/", "")
        good = bool(line) and "\n" not in line
        seen = f"the check before every start (not a live run): '{line}'"
        rows.append(Row(f"clock {what}", seen, round(time.monotonic() - began, 1), good))
    certificate(kit, known.not_before + timedelta(days=1))
    return rows


def twice(folder: Path) -> list[Row]:
    """Two sites with one name."""
    lines = list[str]()
    names = ["site-1", "site-2", "site-1"]
    for refuse in (
        lambda: provision(folder, PROJECT, names, free_port()),
        lambda: HubConfig(experiment={}, kind=None, sites=tuple(names)).save(folder),
    ):
        try:
            refuse()
        except ConfigError as error:
            lines.append(str(error))
    good = len(lines) == 2 and not any("\n" in line for line in lines) and not folder.exists()
    return [Row("two sites with one name", "; ".join(f"'{line}'" for line in lines), "", good)]


def foreign(folder: Path) -> list[Row]:
    """A site of another federation of the same names comes to this hub."""
    experiment, seen, good = scaffold(600), list[str](), list[bool]()
    seconds = list[float]()

    def act(run: Live) -> None:
        run.after(3)
        own = run.kits
        other = provision(folder / "other", PROJECT, list(own.sites), own.hub.port).sites["site-2"]
        with session(own.lead) as engine:
            before = dict(engine.status().sites)
            began, rounds = time.monotonic(), run.rounds()
            start(other)
            try:
                while time.monotonic() - began < 15 and not run.ended.wait(0.5):
                    good.append(dict(engine.status().sites) == before)
                seconds.append(time.monotonic() - began)
                lives = running(other) is not None
                words = (other.folder / "console.txt").read_text(errors="replace")
            finally:
                stop(other)
        why = re.search(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|Handshake[^\n]{0,60}", words)
        seen.append(
            f"for {seconds[0]:.0f} s a process of another root with the name site-2 tried; the registered sites and "
            f"their sessions stayed the same at {sum(good)} of {len(good)} looks; {run.rounds() - rounds} rounds "
            f"were done meanwhile; its process {'went on trying' if lives else 'had ended'}"
            + (f", its console says {why.group(0).strip()}" if why else "")
        )

    run = live(folder / "own", experiment, data_of(3), act, deadline=DEADLINE, quorum=1)
    done = run.rounds() == 600 and not run.missing()
    told = f"{seen[0]}; {'all sites answered every round' if done else _reasons(run)}"
    return [Row("a foreign certificate", told, round(seconds[0], 1), done and bool(good) and all(good))]
