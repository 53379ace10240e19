"""What must be so after a drill. Each check has a name, whether it holds, and what was seen."""

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.drill.drill import RUN, Drill
from benchmarks.drill.replay import replayed
from benchmarks.drill.services import values
from idiolect.deploy.hub.forget import FORGOTTEN
from idiolect.deploy.hub.journal import HubState
from idiolect.deploy.messages import lines_of
from idiolect.study.store.store import Store

NAMED = {"hub.json", "study.json", FORGOTTEN, "received.jsonl"}
"""Files of the hub that may have the forgotten site's name: lists of sites, and the record of what was received.

The logs of events may have it, too.
"""


@dataclass(frozen=True)
class Check:
    """One check. name: what must be so; seen: what was found."""

    name: str
    good: bool
    seen: str


def checked(drill: Drill) -> list[Check]:
    """All checks of a drill that has ended; the audit and the replay are made anew."""
    done = list[Check]()
    for check in CHECKS:
        try:
            done.append(check(drill))
        except Exception as error:  # the page must say which one
            done.append(Check((check.__doc__ or "").rstrip("."), False, f"{type(error).__name__}: {error}"))
        drill.report(f"{'good' if done[-1].good else 'BAD'}: {done[-1].name}: {done[-1].seen}")
    return done


def story_of(drill: Drill) -> dict[str, dict[str, Any]]:
    """Event -> its line in the story."""
    return {line["event"]: line for line in lines_of(drill.story)}


def _ended(drill: Drill) -> Check:
    """The run has ended by itself, with a line for each round."""
    rounds = {line["round"] for line in drill.lines()}
    with Store(drill.hub, create=False) as store:
        states = [row.status for row in store.runs()]
    gaps, starts = set(range(drill.size.rounds)) - rounds, story_of(drill)["end"]["starts"]
    good = states == ["done"] and not gaps and (drill.hub / "report.html").is_file()
    seen = f"runs: {', '.join(states)}; rounds without a line: {len(gaps)}; starts of the last hub run: {starts}"
    return Check("The run has ended by itself, with a line for each round", good, seen)


def _equal(drill: Drill) -> Check:
    """All states equal a replay of the same participation."""
    shared, sites = replayed(drill)
    differ = [site for site, same in sites.items() if not same]
    seen = f"shared state {'equal' if shared else 'DIFFERENT'}; private states of {len(sites) - len(differ)} of "
    seen += f"{len(sites)} honest sites equal{': not of ' + ', '.join(differ) if differ else ''}"
    return Check("All states equal, in every bit, a replay of the same participation", shared and not differ, seen)


def _liar(drill: Drill) -> Check:
    """The liar is named."""
    liar, since = drill.cast.liar, story_of(drill)["begin_to_lie"]["round"]
    until = story_of(drill)["revoke"]["round"] if drill.cast.revoked == liar else drill.size.rounds
    during = [line for line in drill.lines() if since + 2 <= line["round"] < until]
    named = [line for line in during if liar in line.get("refused", {})]
    used = [line for line in during if liar in line["answered"]]
    others = Counter(site for line in drill.lines() for site in line.get("refused", {}) if site != liar)
    why = named[0]["refused"][liar] if named else "never refused"
    seen = f"refused in {len(named)} of {len(during)} rounds: '{why}'; used in {len(used)}; "
    seen += f"refusals of others: {dict(others) or 'none'}"
    return Check("The liar is refused and named", bool(named) and not used and not others, seen)


def _forgotten(drill: Drill) -> Check:
    """The forgotten site is nowhere but in lists of names."""
    site, back = drill.cast.leaver, story_of(drill)["forget"]["forgotten"]["rounds"]
    word = site.encode()
    files = [path for path in drill.hub.rglob("*") if path.is_file() and word in path.read_bytes()]
    names = sorted(path.relative_to(drill.hub).as_posix() for path in files)
    elsewhere = [name for name in names if name not in NAMED and not name.startswith("events.jsonl")]
    kept = [line for line in lines_of(drill.hub / FORGOTTEN) if site in line["answered"]]
    states = [HubState.load(path, RUN) for path in (drill.hub / "checkpoints").glob("*.hub")]
    counted = sum(state is not None and site in {*state.counts, *state.used, *state.rows} for state in states)
    at_site = [*drill.kit(site).site.glob("state/*/*/*.msg"), *drill.kit(site).site.glob("models/*/*")]
    good = len({line["round"] for line in kept}) == back > 0 and not elsewhere and not counted and not at_site
    seen = f"{back} rounds taken back, each in {FORGOTTEN}; its name is in {', '.join(names)}; checkpoints with it: "
    seen += f"{counted}; states and models left at the site: {len(at_site)}"
    return Check("The forgotten site has left nothing but its name in lists", good, seen)


def _revoked(drill: Drill) -> Check:
    """The revoked site is out."""
    site, told = drill.cast.revoked, story_of(drill)
    since = told["revoke"]["round"]
    lines = [line for line in drill.lines() if line["round"] > since + 1]
    answered = [line["round"] for line in lines if site in line["answered"]]
    why = {line["missing"].get(site, "") for line in lines if site in line["cohort"]}
    log = "".join(path.read_text(errors="replace") for path in drill.kit("localhost").folder.glob("log.txt*"))
    at_door = log.count(f"Reject disabled client registration: {site}")
    refused = told["renew"]["refused"]
    good = not answered and at_door > 0 and "revoked" in refused and all("revoked" in one for one in why)
    seen = f"answers used afterwards: {len(answered)}; turned away at the port {at_door} times; its renewal: "
    seen += f"'{refused}'"
    return Check("The revoked certificate is refused, at every connection and for a renewal", good, seen)


def _late(drill: Drill) -> Check:
    """The late site takes part."""
    site, at = drill.cast.late, story_of(drill)["join"]["round"]
    lines = [line for line in drill.lines() if line["round"] >= at]
    answered = [line["round"] for line in lines if site in line["answered"]]
    before = [line for line in drill.lines() if line["round"] < at and site in line["cohort"]]
    share = len(answered) / len(lines)
    seen = f"joined after round {at}, answered {len(answered)} of {len(lines)} rounds since"
    return Check("The late site takes part from its first round on", not before and share > 0.9, seen)


def _dropped(drill: Drill) -> Check:
    """The run goes on without the site that dropped out."""
    site, at = drill.cast.dropout, story_of(drill)["drop"]["rounds"]
    lines = [line for line in drill.lines() if line["round"] > at]
    missing = [line for line in lines if site in line["missing"]]
    reasons = Counter(line["missing"][site] for line in missing)
    seen = "; ".join(f"{number} x {why}" for why, number in reasons.most_common(3))
    good = len(missing) == len(lines) > 0
    return Check("The run goes on without the site that dropped out, and says so in each round", good, seen)


def _killed(drill: Drill) -> Check:
    """Both deaths of the hub cost no round."""
    told, found = story_of(drill), list[str]()
    for event in ("kill_hub", "kill_all_of_hub"):
        found.append(f"{told[event]['killed']} processes, new rounds after {told[event]['seconds']:.0f} s")
    jobs = len({line["job"] for line in drill.lines()})
    good = all(told[event]["killed"] >= 2 for event in ("kill_hub", "kill_all_of_hub"))
    return Check("The hub was killed twice, and went on by itself", good, f"{'; '.join(found)}; jobs in all: {jobs}")


def _renewed(drill: Drill) -> Check:
    """The renewed certificates are in use."""
    told, last = story_of(drill)["renew"], json.loads((drill.folder / "status.json").read_text())
    before, after, sites = (
        told["before"],
        told["after"],
        [name for name in told["renewed"] if name in drill.cast.sites],
    )
    long = all(after[f"site {site}"] > 1000 > 30 > before[f"site {site}"] for site in sites)
    long = long and after["lead"] > 1000 > 30 > before["lead"]
    wire = told["serials"]["kit"] == told["serials"]["wire"]
    own = {site: one["certificate_days"] for site, one in last["sites"].items() if site in sites}
    good = long and wire and all(days > 1000 for days in own.values())
    seen = (
        f"{len(told['renewed'])} certificates: the sites' greetings had {min(before.values()):.0f} days before and "
    )
    seen += f"at least {min(after[f'site {site}'] for site in sites):.0f} after; the hub's port shows the "
    seen += "new certificate" if wire else "OLD certificate"
    return Check("The renewed certificates are used", good, seen)


def _audit(drill: Drill) -> Check:
    """The audit compares all logs."""
    out = drill.folder / "audit"
    for path in sorted(out.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    found = values("hub", "audit", drill.hub, "-o", out, "--site-logs", drill.hand_over())
    differences = json.loads((out / "differences.json").read_text())
    kinds = Counter((one["kind"], one["site"]) for one in differences)
    other = {site: number for (kind, site), number in kinds.items() if kind == "other content"}
    lost = sum(number for (kind, _), number in kinds.items() if kind == "not received")
    unsent = sum(number for (kind, _), number in kinds.items() if kind == "not sent")
    text = (out / "report.md").read_text()
    cast = drill.cast
    story = {
        "the forgotten site": f"{cast.leaver}" in text and "forgotten" in text,
        "the revoked one": "its key was lost" in text,
        "the liar's refusals": f"{cast.liar}" in text and "refused" in text,
    }
    untold = [what for what, told in story.items() if not told]
    good = {*other} == {cast.liar} and not unsent and not untold
    seen = f"{found['equal']:,} messages are equal in both logs; other content than sent: {other}; sent but not "
    seen += f"received: {lost} (to a hub that was killed, or too late); received but not sent: {unsent}"
    seen += f"; the report is silent on {', '.join(untold)}" if untold else ""
    return Check("The audit tells the story: only the liar's messages are others than its log has", good, seen)


def _crate(drill: Drill) -> Check:
    """The audit's folder is a valid RO-Crate."""
    problems = crate_problems(drill.folder / "audit")
    files = sum(path.is_file() for path in (drill.folder / "audit").rglob("*"))
    return Check("The audit's folder is a valid RO-Crate 1.1", not problems, "; ".join(problems) or f"{files} files")


def crate_problems(folder: Path) -> list[str]:
    """What RO-Crate 1.1 asks for and the folder does not have: also each file's hash and size."""
    from rocrate.rocrate import ROCrate

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ROCrate(folder)
    graph = {one["@id"]: one for one in json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]}
    problems, root = list[str](), graph.get("./", {})
    descriptor = graph.get("ro-crate-metadata.json", {})
    if descriptor.get("about") != {"@id": "./"} or "ro/crate/1.1" not in str(descriptor.get("conformsTo")):
        problems.append("the descriptor is not about the folder, or of another version")
    needed = ("name", "description", "datePublished", "license")
    problems += [f"the folder has no {name}" for name in needed if not root.get(name)]
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    parts = {part["@id"] for part in root.get("hasPart", [])}
    problems += [f"{name} is not described" for name in sorted(files - parts - {"ro-crate-metadata.json"})]
    problems += [f"{name} is not there" for name in sorted(parts - files)]
    for name in sorted(parts & files):
        content = (folder / name).read_bytes()
        if graph[name].get("sha256") != hashlib.sha256(content).hexdigest():
            problems.append(f"{name} has another hash")
        if graph[name].get("contentSize") != str(len(content)):
            problems.append(f"{name} has another size")
    return problems


def _clean(drill: Drill) -> Check:
    """Nothing of the drill runs any more."""
    word, left = str(drill.folder / "kits"), list[str]()
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if any(word in part for part in line):
            left.append(" ".join(line)[:80])
    return Check("Nothing of the drill runs afterwards", not left, "; ".join(left) or "no process")


CHECKS: tuple[Callable[[Drill], Check], ...] = (
    _ended,
    _equal,
    _liar,
    _forgotten,
    _revoked,
    _late,
    _dropped,
    _killed,
    _renewed,
    _audit,
    _crate,
    _clean,
)
