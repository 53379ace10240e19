"""Make the advice: train the contestants, score the baselines, decide, and report the cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import equinox as eqx
import numpy as np

from idiolect.core.errors import require
from idiolect.data.encode.labels import lopsided
from idiolect.data.federated import FederatedData
from idiolect.data.sets.pool import free_kept_table
from idiolect.study.advice.about import About, about_of
from idiolect.study.advice.baselines import notes_on_trees, regressions, trees
from idiolect.study.advice.contestants import BUDGET, STEPS, contestants, defaults
from idiolect.study.advice.decision import Decision, alone_of, calls, decide, gap
from idiolect.study.advice.draws import Draws, Make, again
from idiolect.study.advice.pieces import pieces_in
from idiolect.study.advice.policies import policies_of, shown_of
from idiolect.study.advice.race import CHOSEN_BY, Choice, Raced, field_of, race
from idiolect.study.advice.scored import Candidate, by_client, candidate, pooled
from idiolect.study.advice.stages import after, first_answer
from idiolect.study.advice.together import side_by_side
from idiolect.study.analyse.intervals import Difference
from idiolect.study.run.rates import safe_rate
from idiolect.study.run.resolve import bytes_of
from idiolect.study.spec.experiment import digest
from idiolect.study.store.provenance import provenance

Baselines = Literal["all", "regressions", "none"]


@dataclass(frozen=True)
class Line:
    """One line of the advice's table: a candidate's mean test loss and accuracy, and its gap to L, see `decision`.

    gap: None for L itself. hurt: share of the clients whose mean test loss is higher than with L; surely: of those
    called so.
    rounds: median of those chosen, None for a baseline. sent: bytes (down, up) of one client's round.
    """

    name: str
    kind: str
    loss: float
    accuracy: float
    gap: Difference | None
    hurt: float
    surely: float
    rounds: float | None
    sent: tuple[int, int] | None


@dataclass(frozen=True)
class Advice:
    """The advice of `idiolect advise` in plain values; a folder of advice holds the same, see `stored`.

    lines: the table, in order. choices: what was frozen of each method. kept: client -> method -> in how many
    divisions it used that under the policy that is the answer, or else under the portfolio. scale: a label's
    deviation in the user's units, mean over divisions. made: as `provenance` reports it; command: what was typed.
    """

    about: About
    decision: Decision
    lines: tuple[Line, ...]
    choices: tuple[Choice, ...]
    kept: Mapping[str, Mapping[str, int]]
    splits: int
    rounds: int
    scale: float
    notes: tuple[str, ...]
    made: Mapping[str, Any]
    command: str

    @property
    def loss_name(self) -> str:
        """The loss that decides."""
        return CHOSEN_BY[self.about.task]

    def line(self, name: str) -> Line:
        """The line of a candidate."""
        return next(line for line in self.lines if line.name == name)


def advise(
    data: FederatedData | Make,
    *,
    model: eqx.Module | Mapping[str, Any] | str | None = None,
    methods: Sequence[str] | None = None,
    splits: int | None = None,
    rounds: int = 60,
    baselines: Baselines = "all",
    out: Path | None = None,
    command: str = "idiolect.advise(...)",
    on_progress: Callable[[str, float], None] = lambda *_: None,
    on_stage: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Whether these clients should federate, and with what; see `decision` for the rule.

    data: a federation, whose rows are divided anew for each of `splits` draws (None: see `divisions_of`), or a
    function draw -> federation. baselines: "regressions" leaves out the trees, on which the outcome does not depend,
    and "none" the regressions, too: then methods are compared with local training only.
    out: a folder that keeps what is finished, so that the same call continues; see `pieces`. Raises `ConfigError` or
    `DataError` where no advice is possible, `StoreError` if the folder holds another advice. on_stage: receives one
    sentence as soon as it is known: a first answer from the regressions, then each method.
    """
    require(baselines in get_args(Baselines), f"baselines = {baselines!r} is not one of all, regressions, none")
    draws = Draws(again(data) if isinstance(data, FederatedData) else data, splits)
    free_kept_table()
    field, first = field_of(draws, model), draws.first
    rate = safe_rate(first, field.linear)
    chosen = contestants(defaults(first, field.linear) if methods is None else methods, first, rate, rounds)
    labels = [(one.stored("validation").y, one.stored("test").y) for one in draws.data]
    owners = draws.owners("validation"), draws.owners("test")
    question = {
        "data": digest(*(each.fingerprint for each in draws.data)),
        "model": type(model).__name__ if isinstance(model, eqx.Module) else model,
        "parameters": bytes_of(field.problem.module),
        "methods": {one.name: one.settings for one in chosen},
        "splits": draws.count,
        "rounds": rounds,
        "baselines": baselines,
    }
    steps = len(chosen) + 2
    with pieces_in(out, question, command) as pieces:
        on_progress("regressions", 0.0)

        def tell(bars: list[Candidate]) -> None:
            if text := first_answer(bars, draws.ratio, draws.count):
                on_stage(text)

        beside = pieces.bars("regressions", lambda: regressions(draws, tell)) if baselines != "none" else []
        tell(beside)
        on_progress(", ".join(one.name for one in chosen[:2]), 1 / steps)
        done: dict[int, Raced] = {}
        made: dict[int, Candidate] = {}
        work = [
            lambda check, one=one: pieces.raced(one.name, lambda: race(field, one, check))  # pyright: ignore[reportUnknownLambdaType]
            for one in chosen
        ]
        order = sorted(range(len(chosen)), key=lambda place: -chosen[place].rounds)  # the longest first
        for number, result in side_by_side([work[place] for place in order]):
            place = order[number]
            done[place] = result
            if result.choice.finite:
                made[place] = candidate_of(result, labels)
            left = [one.name for i, one in enumerate(chosen) if i not in done]
            on_progress(", ".join(left[:2]) or "trees", (len(done) + 1) / steps)
            if 0 in made:
                # What was finished before local training can be compared only now.
                for news in [i for i in made if i] if place == 0 else [place] if place in made else []:
                    on_stage(after(made[news], alone_of(made[0], beside), left, draws.ratio))
        raced = [done[place] for place in range(len(chosen))]
        finite = [one for one in raced if one.choice.finite]
        require(
            {"local", "fedavg"} <= {one.choice.name for one in finite},
            "local training or FedAvg diverged with every setting; scale the features",
        )
        on_progress("trees", (steps - 1) / steps)
        if baselines == "all":
            beside = [*beside, *pieces.bars("trees", lambda: trees(draws))]
    candidates = [made[place] for place in sorted(made)]
    policies = policies_of(candidates, owners, first.num_clients, labels)
    decision = decide(candidates, policies, owners[1], first.clients, draws.ratio, beside)
    shown = next(one for one in policies if one.name == shown_of(decision.method))
    rows = [*candidates, *(one.candidate for one in policies), *beside]
    alone = alone_of(candidates[0], beside)
    lines = tuple(_line(one, alone, owners[1], first, draws.ratio, finite) for one in rows)
    kept = {
        client: {one.name: sum(int(choice[i]) == k for choice in shown.choices) for k, one in enumerate(candidates)}
        for i, client in enumerate(first.clients)
    }
    choices = tuple(one.choice for one in raced)
    notes = _notes(draws, choices, lines, rounds, {one.name: one.rounds for one in chosen})
    notes += notes_on_trees(draws) if baselines == "all" else ()
    on_progress("done", 1.0)
    scale = float(np.mean([deviation for _, deviation in draws.scale]))
    about = about_of(first)
    return Advice(about, decision, lines, choices, kept, draws.count, rounds, scale, notes, provenance(), command)


def candidate_of(raced: Raced, labels: Sequence[tuple[np.ndarray, np.ndarray]]) -> Candidate:
    """The candidate that a contestant's frozen choices make."""
    outputs = [(each["validation"], each["test"]) for each in raced.outputs]
    return candidate(raced.choice.name, raced.choice.kind, outputs, labels)


def _line(
    one: Candidate,
    alone: Candidate,
    owners: np.ndarray,
    data: FederatedData,
    ratio: float,
    raced: Sequence[Raced],
) -> Line:
    clients = data.num_clients
    means = [by_client(each.test, owners, clients).mean(axis=0) for each in (one, alone)]
    accuracy = float(np.mean([each.mean() for each in one.right])) if one.right is not None else float("nan")
    if one is alone:
        gap_, surely = None, 0.0
    else:
        called = calls(one, alone, owners, data.clients, ratio)
        gap_, surely = gap(one, alone, ratio), sum(each.call == "loses" for each in called) / clients
    run = next((each.choice for each in raced if each.choice.name == one.name), None)
    return Line(
        one.name,
        str(one.kind),
        float(pooled(one.test).mean()),
        accuracy,
        gap_,
        float((means[0] > means[1]).mean()),
        surely,
        None if run is None else float(np.median(run.rounds)),
        None if run is None else run.sent,
    )


def _notes(
    draws: Draws,
    choices: Sequence[Choice],
    lines: Sequence[Line],
    rounds: int,
    limits: Mapping[str, int],
) -> tuple[str, ...]:
    """What a reader should know. limits: the most rounds of each method; only some follow the user's `rounds`."""
    data = draws.first
    notes = [
        f"every method: at most {BUDGET} settings and {rounds} rounds of {STEPS} steps (Newton and trees have rounds "
        "of their own); the worse half of the settings stops early; in each division the setting and the round with "
        "the least validation loss",
        *data.notes,
    ]
    if data.task == "classification":
        labels = np.concatenate([data.stored(name).y for name in ("train", "validation", "test")])
        found = lopsided(labels, data.classes)
        if found is not None:
            label, share = found
            notes.append(
                f"{100 * share:.1f} % of the rows have the label '{label}': who always says it is as often right, so "
                "accuracy means little here. All choices are by log-loss; see balanced-accuracy and auroc in compare"
            )
    for one in choices:
        if one.diverged:
            notes.append(f"{one.name}: {one.diverged} runs diverged, none was chosen")
        if not one.finite:
            notes.append(f"{one.name} diverged with every setting in some division and is left out")
    late = [one for one in choices if limits[one.name] == rounds and 2 * one.rounds.count(rounds) > draws.count]
    if late:
        names = ", ".join(one.name for one in late)
        notes.append(f"{names}: validation loss was still falling in round {rounds}; give --rounds more")
    notes += [
        f"{one.name}: validation loss was still falling at its limit of {limits[one.name]} rounds; "
        "'idiolect compare' with more --rounds trains it to the end"
        for one in choices
        if limits[one.name] != rounds and 2 * one.rounds.count(limits[one.name]) > draws.count
    ]
    guesses = [line for line in lines if line.name.endswith("guess")]
    if guesses:
        least = min(line.loss for line in guesses)
        if min(line.loss for line in lines if not line.name.endswith("guess")) >= least:
            notes.append(
                "no model predicts better than guessing: the features say nothing that rows this few can show"
            )
    return tuple(notes)
