"""What a study's messages reveal of a site's rows: attacks on messages that the site computes and does not send.

It runs in the trainer's process. The attacks know the model and the message, as a hub does; the rows are only used to
see whether an attack has found them. An attack that finds nothing proves nothing: others may find more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from idiolect.client.samples import to_device
from idiolect.core.errors import DataError
from idiolect.data.federated import FederatedData
from idiolect.deploy.headers import Risk
from idiolect.deploy.messages import Vector, Vectors
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.programs import Programs, RoundNumbers, programs_of
from idiolect.deploy.site.row_checks import check_message, check_run, rows_behind
from idiolect.deploy.terms import Place, Terms
from idiolect.deploy.trees import named, restored
from idiolect.study.spec.assemble import problem_of

ROUNDS = 200
"""Most rounds that are tried: attacks on single rows need one per row."""
NUMBERS = 20_000_000
"""Most numbers of all messages that are tried; large models have fewer rounds."""
CLOSE = 0.01
"""A candidate is a row if no feature differs by more, in standard deviations of the feature."""
FLAT = 1e-5
"""Singular values below this share of the largest count as zero in single precision."""
TRAP = 30.0
"""The size of the numbers in a model that a hub chooses: far below what floors must allow, and enough."""


@dataclass
class _Found:
    """The training rows that attacks have found so far: row -> (error, the attack)."""

    rows: dict[int, tuple[float, str]] = field(default_factory=dict[int, tuple[float, str]])

    def compare(self, candidates: Float[np.ndarray, "n features"], x: np.ndarray, attack: str) -> None:
        """Note the rows that are among the candidates."""
        spread = x.std(axis=0)
        # A feature that is the same in all rows has no deviation: it may differ by a share of its size.
        scale = np.where(spread > 1e-6, spread, np.maximum(np.abs(x.mean(axis=0)), 1.0))
        for candidate in candidates:
            error = np.abs((x - candidate) / scale).max(axis=1)
            row = int(error.argmin())
            known, first = self.rows.get(row, (CLOSE, attack))
            if error[row] < known:
                self.rows[row] = float(error[row]), first


def measured(terms: Terms, place: Place, data: FederatedData, floors: Floors) -> Risk:
    """Attack the messages of one run.

    Args:
        terms: the run's.
        place: the site's place in it.
        data: the site's own data, of one client.
        floors: the site's; whether they refuse the run is part of the result.

    Returns:
        The numbers of rows behind a message, the rank of its update, and which rows the attacks have found.
    """
    programs, rows = programs_of(terms, place, data), data.train.count
    algorithm = programs.algorithm
    used = min((of for _, of in rows_behind(data, algorithm) if of is not None), default=None)
    refusal = _refusal(floors, data, programs)
    head = Risk(
        method=algorithm.name,
        rows=rows,
        step=None if used is None else used.step,
        message_rows=None if used is None else used.message,
        refusal=refusal,
    )
    if not algorithm.sends:
        return head.model_copy(update={"verdict": "nothing is sent"})
    x = np.asarray(data.stored("train").x, np.float64).reshape(rows, -1)
    found, ranks, widest, spans = _Found(), [0], 0, 0
    for attack, sent in _messages(programs, terms, place, data):
        for before in ({}, *sent.before):
            for weight, bias in _layers(sent.message, before):
                if weight.shape[1] == x.shape[1]:
                    found.compare(_quotients(weight, bias), x, attack)
        matrices = [*_matrices(sent, x.shape[1])]
        widest = max(widest, *(min(matrix.shape) for matrix in matrices), 0)
        spaces = [(rank, space) for rank, space in map(_space, matrices) if rank]
        # A message may be a model or a gradient. What it reveals is the matrix of the smaller rank.
        rank, space = min(spaces, key=lambda one: one[0], default=(0, x[:0]))
        ranks.append(rank)
        # A space as large as that of all possible rows says nothing of these.
        if rank < x.shape[1] and _inside(x, space) >= max(rank, 1):
            spans = max(spans, rank)
    return head.model_copy(
        update={
            "rank": max(ranks),
            "largest_rank": max(widest, algorithm.rank(programs.start, _shapes(programs, data))),
            "found": len(found.rows),
            "deviation": max((error for error, _ in found.rows.values()), default=0.0),
            "verdict": _verdict(found, rows, spans),
        }
    )


def _verdict(found: _Found, rows: int, space: int) -> str:
    if found.rows:
        attacks = sorted({attack for _, attack in found.rows.values()})
        worst = max(error for error, _ in found.rows.values())
        return (
            f"reveals {len(found.rows)} of {rows} training rows ({', '.join(attacks)}; largest error {worst:.1g} "
            "standard deviations)"
        )
    if space:
        return f"reveals the space of dimension {space} in which rows lie: a linear system can give rows back"
    return "this attack found nothing"


def _refusal(floors: Floors, data: FederatedData, programs: Programs) -> str:
    try:
        check_run(floors, data, programs.algorithm)
        check_message(floors, data, programs, _shapes(programs, data))
    except DataError as error:
        return str(error)
    return ""


def _shapes(programs: Programs, data: FederatedData) -> PyTree:
    return programs.sent(to_device(data.train))


@dataclass(frozen=True)
class _Sent:
    """A message, and what it may be an update of: the view and the private state before the round."""

    message: Vectors
    before: tuple[Vectors, ...]


def _messages(programs: Programs, terms: Terms, place: Place, data: FederatedData) -> Iterator[tuple[str, _Sent]]:
    """The messages of the first rounds from the initial model, and those from models that a hub could choose."""
    samples, seed = to_device(data.train), jax.random.key(terms.seed)
    numbers = RoundNumbers.of(_among_equals(place, data))
    params = problem_of(data, terms.model, terms.seed).params
    first = programs.first(params, numbers, seed)

    def sent(view: PyTree, private: PyTree, round: int) -> tuple[_Sent, PyTree]:
        message, after = programs.local(view, private, samples, numbers, jnp.asarray(round, jnp.int32), seed)
        return _Sent(named(message), (named(view), named(private))), after

    one, _ = sent(first["view"], first["private"], 0)
    size = max(sum(vector.size for vector in one.message.values()), 1)
    rounds, private = max(1, min(terms.rounds, ROUNDS, NUMBERS // size)), first["private"]
    for round in range(rounds):
        got, private = sent(first["view"], private, round)
        yield "the initial model", got
    view = named(first["view"])
    for chosen in _traps(view, data):
        yield "a model that the hub chooses", sent(restored(chosen, first["view"], "a view"), first["private"], 0)[0]


def _among_equals(place: Place, data: FederatedData) -> Place:
    """The place in a federation whose sites are as large as this one: what the others have is not known."""
    return place.model_copy(update={"samples": data.train.count * place.clients})


def _pairs(vectors: Vectors) -> Iterator[tuple[str, str]]:
    """The names of the weights and the bias of each dense layer."""
    for name, vector in vectors.items():
        if name.endswith("weight") and vector.ndim in (1, 2):
            bias = f"{name.removesuffix('weight')}bias"
            if bias in vectors and vectors[bias].shape == vector.shape[:-1]:
                yield name, bias


def _layers(message: Vectors, before: Vectors) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(change of the weights, change of the bias) of each dense layer, (outputs, inputs) and (outputs,).

    before: what was there before the change; empty for a message that is itself a gradient.
    """
    for names in _pairs(message):
        if before and not all(n in before and before[n].shape == message[n].shape for n in names):
            continue
        weight, bias = (
            np.asarray(message[n], np.float64) - (np.asarray(before[n], np.float64) if before else 0) for n in names
        )
        yield weight.reshape(-1, weight.shape[-1]), bias.reshape(-1)


def _quotients(weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """x = dW / db of each output, and of the differences of neighbouring outputs: the row, if it is made of one."""
    tops = np.concatenate([weight, np.diff(weight, axis=0)])
    bottoms = np.concatenate([bias, np.diff(bias)])
    real = np.abs(bottoms) > 1e-12 * max(float(np.abs(bias).max(initial=0.0)), 1e-30)
    return tops[real] / bottoms[real, None]


def _matrices(sent: _Sent, features: int) -> Iterator[np.ndarray]:
    """The matrices of a message with one column per feature: updates of first layers, and sums of curvature."""
    for before in ({}, *sent.before):
        for weight, _ in _layers(sent.message, before):
            if weight.shape[1] == features:
                yield weight
    for name, vector in sent.message.items():
        if name.endswith("curvature") and vector.ndim == 2 and len(vector) > features:
            yield np.asarray(vector[:features, :features], np.float64)  # of the first output's weights


def _space(matrix: np.ndarray) -> tuple[int, np.ndarray]:
    """(rank, an orthonormal basis of the space of its rows)."""
    if not np.isfinite(matrix).all():
        return 0, matrix[:0]
    _, values, basis = np.linalg.svd(matrix, full_matrices=False)
    rank = int((values > FLAT * max(float(values[0]), 1e-30)).sum()) if values[0] > 0 else 0
    return rank, basis[:rank]


def _inside(x: np.ndarray, space: np.ndarray) -> int:
    """How many rows are in a space."""
    rest = x - (x @ space.T) @ space
    return int((np.linalg.norm(rest, axis=1) < CLOSE * np.maximum(np.linalg.norm(x, axis=1), 1e-12)).sum())


def _traps(view: Vectors, data: FederatedData) -> Iterator[dict[str, Vector]]:
    """Models by which a hub could inspect few rows: one class by its bias, or slices of the rows by hidden units."""
    features = int(np.prod(data.feature_shape))
    pairs = [(weight, bias) for weight, bias in _pairs(view) if view[weight].shape[-1] == features]
    for weight, bias in pairs:
        outputs = len(view[bias]) if view[bias].ndim else 0
        if outputs == 0:
            continue
        others = [name for name in view if name.endswith("weight") and name != weight and view[name].ndim == 2]
        if not others:
            for unit in range(outputs):
                low = np.zeros_like(view[bias])
                low[unit] = -TRAP
                yield {**view, weight: np.zeros_like(view[weight]), bias: low}
            continue
        yield {**view, **_slices(view, weight, bias, others)}


def _slices(view: Vectors, weight: str, bias: str, others: list[str]) -> Mapping[str, Vector]:
    """Hidden units that all look along one direction, each beyond its own threshold, and equal weights behind them.

    Neighbouring units differ by the rows between their thresholds: Fowl et al., "Robbing the Fed", ICLR 2022.
    """
    rng, units = np.random.default_rng(0), len(view[bias])
    direction = rng.normal(size=view[weight].shape[1])
    direction /= np.linalg.norm(direction)
    thresholds = np.linspace(-2.5, 2.5, units)
    behind = {name: np.zeros_like(view[name]) for name in others}
    for name in others:
        behind[name][0] = 1 / behind[name].shape[1]
    return {
        weight: np.tile(direction, (units, 1)).astype(view[weight].dtype),
        bias: -thresholds.astype(view[bias].dtype),
        **behind,
    }
