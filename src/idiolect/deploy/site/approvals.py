"""The studies that a site's administrator has approved, and the comparison of every call of the hub with them.

A study is approved by its content: the file keeps the whole study and its digest. A call whose terms differ in any
field from the study's planned run is refused in one line that names the site, the field, what was approved and what
was asked. What no file can say beforehand is fixed by the first call (`ledger`): the kind of the data that the sites
agree on, and the number of all training rows.
"""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from idiolect.core.errors import ConfigError, DataError, StoreError, first_of, reason_of
from idiolect.core.files import json_of, write_text
from idiolect.core.rights import make_folder
from idiolect.deploy.headers import Request
from idiolect.deploy.messages import Vectors, digest_of, digest_of_values, text_of
from idiolect.deploy.query import AnyStudy, DescribeStudy, ScoreStudy
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.ledger import Ledger
from idiolect.deploy.study import ASKED, Difference, Study, differences, group_of, shown
from idiolect.deploy.terms import Place, Terms

FILE = "approvals.json"
SHORT = 12
"""Hex digits of a digest in messages."""
APPROVE = "get study.json from the hub's administrator, and approve it with 'idiolect site approve' if it is right"
ASK = "ask the hub's administrator why, or approve another study with 'idiolect site approve'"
TASKS = {"score": "score", "describe": "describe", "histograms": "describe"}
"""A call of a query -> the purpose of the query that allows it."""
QUERIES = "queries"
"""Where the ledger keeps what all queries have in common, instead of a study's id; no study can have this id."""


class Approval(BaseModel):
    """One approved study. time, revoked: of the administrator's commands; "" if it is not revoked."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    digest: str
    time: str
    revoked: str = ""
    study: AnyStudy

    @model_validator(mode="after")
    def _check(self) -> "Approval":
        if self.study.digest != self.digest:
            raise ValueError(f"study '{self.study.id}' does not match its digest")
        return self


class Approvals(BaseModel):
    """The content of approvals.json: at most one study of each id."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    version: Literal[1] = 1
    approved: tuple[Approval, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> "Approvals":
        ids = [approval.study.id for approval in self.approved]
        if len({*ids}) < len(ids):
            raise ValueError("two studies have one id")
        return self

    def of(self, study: str) -> Approval | None:
        """The approval of a study's id, also a revoked one."""
        return next((approval for approval in self.approved if approval.study.id == study), None)

    @classmethod
    def load(cls, folder: Path) -> "Approvals":
        """Read folder/approvals.json; without the file nothing is approved. Raises `StoreError` if it is damaged."""
        path = folder / FILE
        try:
            return cls.model_validate(json_of(path.read_bytes()))
        except FileNotFoundError:
            return cls()
        except ValidationError as error:
            reason = first_of(error)
        except (OSError, ValueError) as error:
            reason = reason_of(error)
        raise StoreError(
            f"{path} cannot be read ({shown(reason, 120)}), so no call is answered: restore it from a backup, or "
            "remove it and approve the studies again"
        )


def check_member(site: str, study: AnyStudy) -> None:
    """Raise `ConfigError` if the site is none of the study's."""
    if site not in study.present:
        names = ", ".join(map(shown, study.present))
        raise ConfigError(f"site '{site}' takes no part in study {study.id} ({names}): ask the hub to add it")


def approve(folder: Path, site: str, study: AnyStudy, *, changed_rows: bool = False) -> None:
    """Approve a study or a query; it replaces one with the same id. Its rounds so far still count.

    changed_rows: forget the answers to queries so far, so that other rows may be described and scored.

    After a second approval of the same study, the next call fixes anew the kind and the number of all rows.
    Raises `ConfigError` if the site is none of the study's, or has approved another query with the same model,
    `StoreError` if the file cannot be read or written.
    """
    check_member(site, study)
    with _changing(folder) as before:
        known = before.of(study.id)
        # A run that is started again, to forget a site, may have another kind of data and other numbers of rows.
        if known is not None and (known.digest == study.digest or _starts(known.study) != _starts(study)):
            Ledger(folder).unpin(study.id)
        _check_model(before, study)
        if changed_rows:
            Ledger(folder).unpin(QUERIES)
        new = Approval(digest=study.digest, time=_now(), study=study)
        others = tuple(approval for approval in before.approved if approval.study.id != study.id)
        _save(folder, Approvals(approved=(*others, new)))


def _starts(study: AnyStudy) -> dict[str, int]:
    """How often each run was started again; a query has no runs."""
    return study.starts if isinstance(study, Study) else {}


def _check_model(before: Approvals, study: AnyStudy) -> None:
    """One approval per model: raise `ConfigError` if another query with the same model is approved."""
    for approval in before.approved:
        other = approval.study
        if not isinstance(other, ScoreStudy) or not isinstance(study, ScoreStudy) or approval.revoked:
            continue
        if other.id != study.id and other.model.sha256 == study.model.sha256:
            raise ConfigError(
                f"model {study.model.sha256[:SHORT]} is approved already, in {other.id}, and its scores are with the "
                f"hub: revoke that one first ('idiolect site revoke KIT {other.id}')"
            )


def revoke(folder: Path, study: str) -> Approval:
    """Take the approval of a study's id back: from now on its calls are refused. Returns what was approved.

    Raises `ConfigError` if it is not approved, `StoreError` if the file cannot be read or written.
    """
    with _changing(folder) as before:
        known = before.of(study)
        if known is None or known.revoked:
            now = [approval.study.id for approval in before.approved if not approval.revoked]
            raise ConfigError(f"no study '{study}' is approved here; approved: {', '.join(now) or 'none'}")
        new = known.model_copy(update={"revoked": _now()})
        _save(folder, Approvals(approved=tuple(new if one is known else one for one in before.approved)))
    return new


@contextmanager
def _changing(folder: Path) -> Generator[Approvals]:
    """The approvals, while no other command changes them."""
    try:
        make_folder(folder)
        lock = FileLock(folder / "approvals.lock", timeout=10, mode=0o600)
        lock.acquire()
    except Timeout:
        raise StoreError(f"another command changes {folder / FILE}; try again") from None
    except OSError as error:
        raise StoreError(f"cannot write to '{folder}': {reason_of(error)}") from error
    try:
        yield Approvals.load(folder)
    finally:
        lock.release()


def _save(folder: Path, approvals: Approvals) -> None:
    write_text(folder / FILE, text_of(approvals.model_dump(mode="json")) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class RefusalError(DataError):
    """A call that no approved study says; the message names site, field, what was approved, and what was asked."""


class Consent:
    """Compares the hub's calls with the approved studies of a site's folder, and counts them.

    site: its name; floors: its own limits of replies, which hold in addition to the study's.
    """

    def __init__(self, folder: Path, site: str, floors: Floors) -> None:
        self.folder, self.site, self.floors, self.ledger = folder, site, floors, Ledger(folder)
        self._read: tuple[Any, Approvals] = None, Approvals()

    def check(self, request: Request) -> Study | None:
        """The call's study. Raises `RefusalError` unless it is approved and says just this; a greeting has none."""
        if request.terms is not None:
            return self._check_run(request, request.terms, request.place)
        if request.task in TASKS:
            self.query(request)
        return self._check_summary(request) if request.task == "summary" else None

    def query(self, request: Request) -> ScoreStudy | DescribeStudy:
        """The approved query of a call. Raises `RefusalError` if there is none, or it does not allow the call."""
        query = self._approval(request.study, request.approved)
        purpose = TASKS.get(request.task, request.task)
        if isinstance(query, Study) or query.purpose != purpose:
            words = "train" if isinstance(query, Study) else query.purpose
            raise self._refusal(query.id, "", Difference("purpose", words, shown(purpose)), ASK)
        return query

    def refuse(
        self, query: ScoreStudy | DescribeStudy, field: str, approved: str, asked: str, todo: str
    ) -> RefusalError:
        """The refusal of a call that the query does not say."""
        return self._refusal(query.id, "", Difference(field, approved, asked), todo)

    def check_still(self, request: Request) -> None:
        """Raise `RefusalError` if the study has been revoked or replaced since the call came."""
        if request.terms is not None:
            self._approved(request.terms.study, request.terms.approved)
        elif request.task == "summary" or request.task in TASKS:
            self._approval(request.study, request.approved)

    def keep(self, request: Request) -> None:
        """Fix what the first call of a run says of the data: for a call that the site could answer.

        Raises `RefusalError` if another call has fixed something else in the meantime.
        """
        terms, place = request.terms, request.place
        if terms is None or request.task == "hello":
            self.check_still(request)
            return
        study = self._approved(terms.study, terms.approved)
        if study.kind is None:
            self._fix(terms.study, "", "kind", digest_of_values(terms.kind), terms.run)
        if place is not None and _is_fixed(study):
            self._fix(terms.study, terms.run, "place.samples", str(place.samples), terms.run)

    def check_round(self, request: Request, vectors: Vectors, message: Vectors) -> None:
        """Note a round before anything of it is sent. vectors: of the call; message: what would be sent.

        The same call again counts once. Another model for the same round counts as another round: each answer to
        another model says more about the rows. Raises `RefusalError` beyond the approved rounds, and for a message
        with other vectors than the study says; `DataError` beyond the site's floors.
        """
        terms = request.its_terms
        sends = self._approved(terms.study, terms.approved).travels[group_of(terms.run)].sends
        known = {part.name: part.shape is not None for part in sends}
        expected = {part.name: [part.type, *([] if part.shape is None else [list(part.shape)])] for part in sends}
        sent = {
            name: [vector.dtype.name, *([list(vector.shape)] if known.get(name, True) else [])]
            for name, vector in message.items()
        }
        for difference in differences(expected, sent, "travels"):
            raise self._refusal(terms.study, terms.run, difference, ASK)
        self._count(request, "rounds", vectors)

    def check_evaluation(self, request: Request, vectors: Vectors) -> None:
        """Note an evaluation before its answer is sent, as `check_round` does. vectors: of the call."""
        self._count(request, "evaluations", vectors)

    def _count(self, request: Request, task: Literal["rounds", "evaluations"], vectors: Vectors) -> None:
        terms, place = request.its_terms, request.its_place
        study = self._approved(terms.study, terms.approved)
        planned = study.planned(terms.run)
        starts = 1 + study.starts.get(terms.run, 0)
        most = getattr(planned, task) * starts if planned else 0
        asked, own = most + study.again, self.floors.most_replies(task, terms.rounds, starts)
        key = digest_of_values([request.round, request.used, place.model_dump(mode="json"), digest_of(vectors)])
        if not self.ledger.asked(study.id, terms.run, task, key, min(asked, own)):
            if own < asked:
                raise self.floors.used_up(self.site, task, terms.rounds, starts)
            found = Difference(task, f"{most}, and {study.again} asked again with another model", "another one")
            raise self._refusal(study.id, terms.run, found, ASK)

    def _approved(self, study: str, digest: str) -> Study:
        """The approved study of a call of a run."""
        found = self._approval(study, digest)
        if not isinstance(found, Study):
            raise self._refusal(study, "", Difference("purpose", found.purpose, "train"), ASK)
        return found

    def _approval(self, study: str, digest: str) -> Study | ScoreStudy | DescribeStudy:
        """The approved study or query of a call."""
        known = self._approvals().of(study)
        if not study:
            difference, todo = Difference("study", "studies by their ids", "a call without a study"), APPROVE
        elif known is None:
            difference, todo = Difference("study", "no study with this id", shown(study)), APPROVE
        elif known.revoked:
            asked = shown(study)
            difference, todo = Difference("study", f"none: revoked on {known.revoked[:19]}", asked), ASK
        elif known.digest != digest:
            asked = shown(digest)[:SHORT] or "none"
            difference = Difference("digest", known.digest[:SHORT], asked)
            todo = f"the study has changed: {APPROVE}"
        else:
            return known.study
        raise self._refusal(study, "", difference, todo)

    def _approvals(self) -> Approvals:
        """The file's content, read again when it has changed: also other processes change it."""
        try:
            found = (self.folder / FILE).stat()
            mark = found.st_ino, found.st_mtime_ns, found.st_size
        except OSError:
            return Approvals.load(self.folder)
        if self._read[0] != mark:
            self._read = mark, Approvals.load(self.folder)
        return self._read[1]

    def _check_summary(self, request: Request) -> Study:
        study = self._approved(request.study, request.approved)
        if study.kind is not None:
            planned = Difference("summary", "a study with a schema", "sums of the columns")
            raise self._refusal(study.id, "", planned, ASK)
        table = {key: value for key, value in study.table.items() if key in ASKED}
        for difference in differences(table, request.table, "table"):
            raise self._refusal(study.id, "", difference, ASK)
        return study

    def _check_run(self, request: Request, terms: Terms, place: Place | None) -> Study:
        study = self._approved(terms.study, terms.approved)
        planned = study.planned(terms.run)
        if planned is None:
            runs = f"the study's {len(study.runs)} runs"
            raise self._refusal(study.id, "", Difference("run", runs, shown(terms.run)), ASK)
        kind = terms.kind if study.kind is None else study.kind
        expected = Terms(**planned.values(kind), study=study.id, approved=study.digest)
        found = list[Difference]()
        if text_of(expected.model_dump(mode="json")) != text_of(terms.model_dump(mode="json")):
            found += differences(expected.model_dump(mode="json"), terms.model_dump(mode="json"))
        if study.kind is None:
            fixed, now = self.ledger.pinned(study.id, "", "kind"), digest_of_values(terms.kind)
            if fixed is not None and fixed != now:
                found.append(Difference("kind", f"{fixed[:SHORT]} (as first agreed)", now[:SHORT]))
        if request.run not in ("", terms.run):
            found.append(Difference("run", shown(terms.run), shown(request.run)))
        starts = study.starts.get(terms.run, 0)
        if request.start != starts:
            found.append(Difference("start", f"the run started again {starts} times", f"{request.start} times"))
        last = planned.rounds - (request.task == "round")
        if request.round > last:
            what = "round" if request.task == "round" else "rounds done"
            found.append(
                Difference(what, f"at most {planned.rounds}", f"{request.round + (request.task == 'round')}")
            )
        if place is not None and not found:
            found += self._about_place(study, terms, place)
        if found:
            raise self._refusal(study.id, terms.run, found[0], ASK)
        return study

    def _about_place(self, study: Study, terms: Terms, place: Place) -> Generator[Difference]:
        """What is impossible in a site's place."""
        planned, fixed = study.planned(terms.run), _is_fixed(study)
        near = planned and planned.neighbours
        sites = len(study.sites)
        if place.clients != sites if fixed else not 0 < place.clients <= sites:
            yield Difference("place.clients", f"{'' if fixed else 'at most '}{sites} sites", str(place.clients))
        if place.id != study.sites.index(self.site) if fixed else place.id >= place.clients:
            yield Difference("place.id", str(study.sites.index(self.site)), str(place.id))
        size = float(place.clients) if terms.cohort is None else terms.cohort
        if place.cohort != size:
            yield Difference("place.cohort", f"{size:g}", f"{place.cohort:g}")
        if terms.sampling == "fixed" and place.cohort < study.smallest_cohort:
            yield Difference("place.cohort", f"at least {study.smallest_cohort}", f"{place.cohort:g}")
        if place.samples < place.clients:
            yield Difference("place.samples", "at least a row per site", str(place.samples))
        known = self.ledger.pinned(study.id, terms.run, "place.samples") if fixed else None
        if known is not None and known != str(place.samples):
            yield Difference("place.samples", f"{known} (as first asked)", str(place.samples))
        if (near is None) != (place.neighbours is None):
            words = ("neighbours", "a hub that aggregates")
            yield Difference("place.neighbours", words[near is None], words[place.neighbours is None])
        elif near is not None and fixed:
            yield from differences(near.get(self.site, {}), place.neighbours, "place.neighbours")
        for name in place.neighbours or {}:
            if name not in study.sites or name == self.site:
                yield Difference("place.neighbours", "sites of the study", shown(name))

    def _fix(self, study: str, run: str, field: str, value: str, named: str) -> None:
        kept = self.ledger.pin(study, run, field, value)
        if kept != value:
            found = Difference(field, f"{kept[:SHORT]} (as first asked)", value[:SHORT])
            raise self._refusal(study, named, found, ASK)

    def _refusal(self, study: str, run: str, difference: Difference, todo: str) -> RefusalError:
        where = f"study {shown(study) or 'none'}" + (f", run {shown(run)}" if run else "")
        return RefusalError(f"site '{self.site}' refuses: {where}: {difference}; {todo}")


def _is_fixed(study: Study) -> bool:
    """Whether each site's number, and the number of all, are those of the study.

    In one that sites have left or joined, a run may have begun before: then its sites are others.
    """
    return not study.left and not study.late
