"""Small federations for the measurements: data, experiments, and what hub and sites keep of a run."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.core.files import file_name
from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message, Vectors, read_message
from idiolect.deploy.nvflare.local_federation import OWN, kits_here, started, supervised
from idiolect.deploy.nvflare.provision import Kits
from idiolect.deploy.site.state import state_of
from idiolect.deploy.this_machine import SITES, prepare, quick
from idiolect.deploy.transport import HubTransport, Replies
from idiolect.study.spec.experiment import Experiment, comparison_of

NAME = "small"


def data_of(sites: int = 4, features: int = 5, samples: int = 40, seed: int = 0) -> FederatedData:
    """Sites of different sizes and label rules: `samples` rows at the first, a few more at each next one."""
    rng, parts = np.random.default_rng(seed), {}
    for number in range(1, sites + 1):
        x = rng.normal(size=(samples + 4 * number, features)).astype("f4")
        parts[f"site-{number}"] = x, (x @ rng.normal(size=(features, 3))).argmax(axis=1)
    return from_arrays(parts)


def experiment_of(methods: Sequence[Mapping[str, Any] | str], **settings: Any) -> Experiment:
    """One cell of these methods; settings: of the cell."""
    given: dict[str, Any] = {"model": {"name": "mlr"}, "rounds": 20, "eval_every": 5, **settings}
    model = given.pop("model")
    return comparison_of(NAME, {"name": "own"}, model, methods, title="Sites", **given)


def run_id(method: str) -> str:
    """The id of a method's run."""
    return f"{NAME}/{method}/seed0"


@dataclass(frozen=True)
class Place:
    """Where the parts of a federation lie: the hub's folder and each site's own."""

    hub: Path
    sites: dict[str, Path]

    def shared(self, run: str) -> Vectors:
        """The hub's state."""
        return _read(self.hub / "checkpoints" / f"{file_name(run.replace('/', '__'))}.hub").vectors

    def private(self, run: str) -> dict[str, Vectors]:
        """Each site's state."""
        name = file_name(run.replace("/", "__"))
        return {
            site: state_of(_read(next((path / "state").glob(f"*/{name}/kept.msg"))))
            for site, path in self.sites.items()
        }

    def answered(self, run: str) -> dict[int, list[str]]:
        """Who answered in each round; of a round that was repeated, the last line counts."""
        return {line["round"]: line["answered"] for line in Participation(self.hub).lines() if line["run"] == run}


def _read(path: Path) -> Message:
    message = read_message(path)
    assert message is not None, f"{path} is missing"
    return message


class Only:
    """A transport in which a round is answered by the sites that have answered it elsewhere, and by no other.

    answered: run -> round -> sites.
    """

    def __init__(self, inner: HubTransport, answered: Mapping[str, Mapping[int, Sequence[str]]]) -> None:
        self.inner, self.answered = inner, answered

    @property
    def sites(self) -> Sequence[str]:
        """All sites."""
        return self.inner.sites

    def call(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """As `HubTransport.call`; silent sites do not hear the call."""
        first = next(iter(messages.values())).header
        allowed = set(messages)
        if first.get("task") == "round":
            allowed = set(self.answered[str(first["run"])][round])
        got = self.inner.call(round, {s: m for s, m in messages.items() if s in allowed}, deadline=deadline)
        return Replies(got.replies, {**got.missing, **{s: "silent" for s in messages if s not in allowed}})


def run_in_process(
    out: Path,
    experiment: Experiment,
    data: FederatedData,
    wrap: Callable[[HubTransport], HubTransport] = lambda inner: inner,
    **settings: Any,
) -> Place:
    """Run without a network, trainers as processes; wrap: changes the transport."""
    names = prepare(out, experiment, data, **settings)
    with quick(out, names, data) as transport:
        run_hub(out, wrap(transport))
    return Place(out, {name: out / SITES / name for name in names})


def run_same_participation(out: Path, place: Place, experiment: Experiment, data: FederatedData) -> Place:
    """The undisturbed run in which every round has the answers that it had in another."""
    runs = [run_id(method.title) for cell in experiment.cells for method in cell.methods]
    answered = {run: place.answered(run) for run in runs}
    return run_in_process(
        out, experiment, data, lambda inner: Only(inner, answered), quorum=1, patience=1_000_000, starting=600.0
    )


@contextmanager
def processes(
    out: Path, experiment: Experiment, data: FederatedData, **settings: Any
) -> Generator[tuple[Kits, Place, Callable[[Callable[[str], None]], int]]]:
    """Kits and processes of a federation, its places, and a function that supervises the run to its end."""
    names = prepare(out, experiment, data, **settings)
    kits = kits_here(out, names, data)
    place = Place(out, {name: kit.folder / OWN for name, kit in kits.sites.items()})
    with started(kits, out):
        yield kits, place, lambda tell: supervised(kits, out, names, tell).run()


def run_processes(
    out: Path, experiment: Experiment, data: FederatedData, tell: Callable[[str], None] = print, **settings: Any
) -> Place:
    """Run between real processes, mutual TLS, to the end."""
    with processes(out, experiment, data, **settings) as (_, place, run):
        run(tell)
    return place
