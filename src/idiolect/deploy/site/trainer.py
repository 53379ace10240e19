"""The trainer: a site's data and compiled programs behind one function from message to message.

It keeps no state of a run. All that a call needs is in its message, so a trainer can die and another one take over.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from pydantic import ValidationError

from idiolect.algorithms import registry as methods
from idiolect.client.samples import Samples, to_device
from idiolect.core.errors import ConfigError, DataError, DivergedError, IdiolectError, first_of
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.deploy.headers import Columns, Histograms, Joined, Looked, Request, Summed, Written
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message, Vectors, digest_of_values, part_of
from idiolect.deploy.query import ScoreStudy
from idiolect.deploy.schema.agree import agree
from idiolect.deploy.schema.describe import Described, cells
from idiolect.deploy.schema.summary import TableSummary
from idiolect.deploy.site.config import FILE
from idiolect.deploy.site.data import (
    OwnData,
    described,
    digest_of_training,
    own_data,
    own_description,
    own_summary,
)
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.programs import Programs, RoundNumbers, programs_of
from idiolect.deploy.site.queries import MODEL
from idiolect.deploy.site.risk import measured
from idiolect.deploy.site.row_checks import check_message, check_run
from idiolect.deploy.site.rows import changed
from idiolect.deploy.site.score import score_message, scored, split_names
from idiolect.deploy.site.state import MODELS, run_folder
from idiolect.deploy.terms import Terms
from idiolect.deploy.trees import named, restored
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.store.model_files import save_client_models, write_index

Tell = Callable[[Mapping[str, Any]], TableSummary]


class SiteTrainer:
    """Answers a site's calls.

    load: the site's own data, of one client, encoded as a kind says; models: the folder for its model files;
    summarise: the summary of the site's table, given how the hub asks to read it; look: says in words what the data
    are; floors: below which nothing is computed from rows that the site would send; describe: the description of the
    site's table, given how the hub asks to read it.
    """

    def __init__(
        self,
        load: Callable[[Kind], FederatedData],
        models: Path | None = None,
        summarise: Tell | None = None,
        look: Callable[[], str] | None = None,
        floors: Floors | None = None,
        describe: Callable[[Mapping[str, Any]], Described] | None = None,
    ) -> None:
        self.describe = describe
        self.load, self.folder, self.summarise, self.look = load, models, summarise, look
        self.floors = Floors() if floors is None else floors
        self._loaded: dict[str, FederatedData] = {}
        self._passed = set[str]()
        self._digests: dict[str, str] = {}
        self._tasks: dict[str, Callable[[Request, Vectors], Message]] = {
            "look": self._look,
            "summary": self._summary,
            "join": self._join,
            "begin": self._begin,
            "local": self._local,
            "mix": self._mix,
            "evaluate": self._evaluate,
            "models": self._models,
            "risk": self._risk,
            "score": self._score,
            "describe": self._describe,
            "histograms": self._histograms,
        }

    def __call__(self, message: Message) -> Message:
        """Answer one call; a known error is a message with `error`."""
        try:
            request = Request.of(message, "the site's call")
            if request.task not in self._tasks:
                raise DataError(f"unknown task '{request.task}'")
            return self._tasks[request.task](request, message.vectors)
        except IdiolectError as error:
            return Message({"error": str(error)})

    def _look(self, request: Request, vectors: Vectors) -> Message:
        """What the data are, in words for the site's own administrator, and this process's memory in bytes."""
        del request, vectors
        if self.look is None:
            raise DataError("the configuration does not name the data")
        return Looked(data=self.look(), resident=resident()).message()

    def _summary(self, request: Request, vectors: Vectors) -> Message:
        """Sums and names of the table's columns."""
        del vectors
        if self.summarise is None:
            raise DataError("the site's data are no table, so no schema can be agreed on")
        return Summed(summary=self.summarise(request.table).to_dict()).message()

    def _join(self, request: Request, vectors: Vectors) -> Message:
        """The numbers of samples, after the kind of data has been compared."""
        del vectors
        data, counts = self._guarded(request), dict[str, Any]()
        if request.salt:
            counts["rows"] = self._rows(request, data)
        return Joined(samples={name: data.split(name).count for name in SPLITS}, **counts).message()

    def _begin(self, request: Request, vectors: Vectors) -> Message:
        """The state before the first round, from the initial parameters."""
        programs, numbers, seed, _ = self._of(request)
        params = restored(part_of("params", vectors), programs.start.params, "the hub's initial model")
        return Message({}, named(self._kept(programs.begin(params, numbers, seed), request)))

    def _local(self, request: Request, vectors: Vectors) -> Message:
        """One round: the message and the next private state."""
        programs, numbers, seed, round = self._of(request)
        view, private = self._state(programs, vectors)
        sent, after = programs.local(view, private, self._train(request), numbers, round, seed)
        result = {"message": sent, "private": after}
        if not all(np.isfinite(leaf).all() for leaf in named(result).values() if leaf.dtype.kind == "f"):
            reason = f"{programs.algorithm.name} diverged (NaN or infinity) in round {int(round) + 1}"
            raise DivergedError(
                f"{reason}; lower the learning rates", round=int(round) + 1, client=None, stage="local training"
            )
        return Message({}, named(result))

    def _mix(self, request: Request, vectors: Vectors) -> Message:
        """The step among neighbours; vectors others/..., leaves (neighbours, ...), and weights."""
        programs = self._of(request)[0]
        like = programs.sent(self._train(request))
        own = restored(part_of("message", vectors), like, "the site's own message")
        weights = jnp.asarray(vectors["weights"])
        many = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((len(weights), *leaf.shape), leaf.dtype), like)
        others = restored(part_of("others", vectors), many, "a neighbour's message")
        return Message({}, named({"view": programs.mix(own, others, weights)}))

    def _evaluate(self, request: Request, vectors: Vectors) -> Message:
        """Each model's scores on the site's splits: sums, so that the hub's are those over all sites."""
        programs, numbers, seed, round = self._of(request)
        view, private = self._state(programs, vectors)
        data, wanted = self._data(request), request.its_terms.splits
        names, kept = split_names(self.floors, data, wanted, programs.metrics)
        splits, tiles = programs.tiles(data, names)
        scores = programs.score(
            request.names, self._train(request), splits, tiles, view, private, numbers, round, seed
        )
        return score_message(programs.metrics, scores, kept)

    def _score(self, request: Request, vectors: Vectors) -> Message:
        """The scores of a query's model on the site's splits."""
        query = ScoreStudy.model_validate(request.query)
        data = self._of_kind(Kind.from_dict(query.kind, "the query's kind of data"))
        return scored(query, vectors[MODEL].tobytes(), data, self.floors)

    def _describe(self, request: Request, vectors: Vectors) -> Message:
        """The site's columns, without those of few rows."""
        del vectors
        return Columns(summary=self._description(request).summary.to_dict()).message()

    def _histograms(self, request: Request, vectors: Vectors) -> Message:
        """Histograms of the columns that may have one."""
        del vectors
        made, least = self._description(request), self.floors.count
        found: dict[str, Any] = {}
        for name, grid in request.grids.items():
            values = made.numbers(name, grid.reading)
            if values is not None:
                found[name] = [
                    (low if np.isfinite(low) else None, high if np.isfinite(high) else None, rows)
                    for low, high, rows in cells(values, grid.start, grid.width, least)
                ]
        return Histograms(cells=found).message()

    def _description(self, request: Request) -> Described:
        if self.describe is None:
            raise DataError("the site's data are no table, so their columns cannot be described")
        made = self.describe(request.table)
        site = made.summary.site
        self.floors.check_data(site, made.summary.rows, None, self.floors.classes)
        return made

    def _models(self, request: Request, vectors: Vectors) -> Message:
        """Write the site's models as files that predict raw rows."""
        programs, numbers, seed, round = self._of(request)
        if self.folder is None:
            return Written(written=()).message()
        terms, data = request.its_terms, self._data(request)
        view, private = self._state(programs, vectors)
        models = programs.made(view, private, self._train(request), numbers, round, seed)
        folder = run_folder(self.folder, terms)
        written: list[dict[str, Any]] = []
        for name in request.names:
            written += save_client_models(
                folder,
                name,
                models[name],
                programs.objective,
                data=data,
                clients=data.clients,
                spec=terms.model,
                extra={"run": terms.run, "round": int(round)},
            )
        write_index(folder, terms.run.split("/")[0], terms.method_name, written)
        return Written(written=tuple(line["file"] for line in written)).message()

    def _risk(self, request: Request, vectors: Vectors) -> Message:
        """What the run's messages reveal. No site passes this call on: only its administrator asks."""
        del vectors
        if not request.its_terms.kind:
            request = request.model_copy(update={"terms": self._with_kind(request)})
        return measured(request.its_terms, request.its_place, self._data(request), self.floors).message()

    def _with_kind(self, request: Request) -> Terms:
        """The terms with the kind of data that the site's own table would have, before sites have agreed on one."""
        if self.summarise is None:
            raise DataError("the study names no kind of data, and the site's data are no table")
        summary = self.summarise(request.table)
        kind = Kind.of_schema(agree({summary.site: summary})[0])
        return request.its_terms.model_copy(update={"kind": kind.to_dict()})

    def _data(self, request: Request) -> FederatedData:
        """The site's data, of the kind that the call names; read once. Raises `DataError` if its training rows are
        not those of the digest that the site expects.
        """
        data = self._of_kind(Kind.from_dict(request.its_terms.kind))
        if request.rows and self._rows(request, data) != request.rows:
            raise DataError(changed(request.its_terms.study))
        return data

    def _of_kind(self, kind: Kind) -> FederatedData:
        """The site's data, encoded as a kind says; read once."""
        if kind.digest not in self._loaded:
            self._loaded, self._passed, self._digests = {kind.digest: self.load(kind)}, set(), {}
        return self._loaded[kind.digest]

    def _rows(self, request: Request, data: FederatedData) -> str:
        """The digest of the training rows with the site's salt; computed once."""
        if request.salt not in self._digests:
            self._digests[request.salt] = digest_of_training(request.salt, data)
        return self._digests[request.salt]

    def _guarded(self, request: Request) -> FederatedData:
        """The site's data, after its floors have been checked for this method. Raises `DataError` below one."""
        terms, data = request.its_terms, self._data(request)
        key = digest_of_values(terms.method)
        if key not in self._passed:
            check_run(self.floors, data, methods.build(terms.method))
            self._passed.add(key)
        return data

    def _of(self, request: Request) -> tuple[Programs, RoundNumbers, Any, Any]:
        terms, place = request.its_terms, request.its_place
        numbers, round = RoundNumbers.of(place), jnp.asarray(request.round, jnp.int32)
        data = self._guarded(request)
        programs = programs_of(terms, place, data)
        key = digest_of_values([terms.method, terms.model, place.clients, place.cohort])
        if not self.floors.solvable and key not in self._passed:
            check_message(self.floors, data, programs, programs.sent(self._train(request)))
            self._passed.add(key)
        return programs, numbers, jax.random.key(terms.seed), round

    def _kept(self, first: PyTree, request: Request) -> PyTree:
        """What the site keeps: without neighbours, no view, which comes from the hub in each round."""
        alone = request.its_place.neighbours is not None
        return first if alone else {"private": first["private"]}

    def _state(self, programs: Programs, vectors: Vectors) -> tuple[PyTree, PyTree]:
        like = programs.like
        view = restored(part_of("view", vectors), like["view"], "the hub's state")
        return view, restored(part_of("private", vectors), like["private"], "the site's private state")

    def _train(self, request: Request) -> Samples:
        return to_device(self._data(request).train)


def resident() -> int:
    """Bytes of memory that this process has; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def trainer_of(settings: Mapping[str, Any]) -> SiteTrainer:
    """The trainer that a child's settings name; its data are read now. Raises `DataError` if they cannot be."""
    use_compilation_cache()
    folder, own = Path(settings["folder"]), own_of(settings)
    floors = Floors.model_validate(settings.get("floors", {}))
    count = floors.count
    summarise = None if own.table is None else lambda asked: own_summary(own, asked, count)
    look = lambda: described(own, count)  # noqa: E731
    describe = None if own.table is None else lambda asked: own_description(own, asked, count)
    return SiteTrainer(lambda kind: own_data(own, kind), folder / MODELS, summarise, look, floors, describe)


def own_of(settings: Mapping[str, Any]) -> OwnData:
    """Where the data lie, by a child's settings. Raises `ConfigError` if they are none."""
    folder = Path(settings["folder"])
    try:
        return OwnData(name=settings["name"], **placed(settings["data"], folder))
    except ValidationError as error:
        raise ConfigError(f"{folder / FILE}: data: {first_of(error)}") from None


def placed(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of a site's data, with paths as seen from its folder made absolute."""
    paths = {key: str(folder / str(data[key])) for key in ("table", "arrays", "schema") if data.get(key)}
    return {**data, **paths}
