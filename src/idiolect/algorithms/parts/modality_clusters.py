"""Clusters of clients by modality: encoders and decoders trained in turn, with step sizes that clients choose."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, Weighting, check
from idiolect.algorithms.parts.solvers import LocalSteps
from idiolect.client.client import Client
from idiolect.client.objective import Batch
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.errors import require, unknown
from idiolect.core.random import permuted
from idiolect.core.tree import Params, Scalar
from idiolect.models.multimodal import branches, joined
from idiolect.models.parts import Head, separate

SelectOn = Literal["same", "held-out"]
Update = Literal["sequential", "simultaneous"]
WHOLE = ""  # the one cluster of a model that is not made of modalities
_DRAW = 0x64  # the purpose of d, apart from the mini-batches' draws


class Trained(NamedTuple):
    """What a client sends to one modality's cluster: its model, its samples of the modality, the rate it chose."""

    params: Params
    samples: Float[Array, ""]
    chosen: Int[Array, ""]


class Clusters(eqx.Module):
    """The server's state. params: theta^m of each modality; chosen: which share of its last cohort took each rate."""

    params: dict[str, Params]
    chosen: dict[str, Float[Array, "rates"]]


def _where(condition: Bool[Array, ""], new: PyTree, old: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def _several(given: Any) -> Any:
    """One value or several, as a tuple."""
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)


class ModalityClusters(LocalSteps):
    """A method that averages encoders and decoders inside each modality, with steps of a size that clients choose.

    rates: the eta_i; with a single one there is nothing to choose, and no d. meta_size: samples of d. meta_steps:
    T_temp. local_steps, epochs, batch_size, batches: T and the mini-batches, see `LocalSteps`.
    update: "simultaneous" makes (5) and (6) from one backward pass at the same point, as SplitNN does.
    select_on: "held-out" compares the losses on as many other samples instead of d; a client with fewer than twice
    meta_size samples halves them. decoder: which part of the model that is, see `models.parts.separate`; "model": the
    decoders of a multimodal model, the last layer of any other. weighting: "uniform" as (8); "size": by samples of m.
    modalities: those that are trained, all of the model's by default.

    A client is in the cluster of m if any of its training samples has m; samples without m count for nothing. The
    clusters do not meet: each modality trains as it would by itself. A modality that no client of a cohort has stays
    as it is. A model that is not multimodal is one cluster of all clients. The equations are those of `MmFL`.
    """

    rates: tuple[Scalar, ...] = eqx.field(default=(0.01, 0.001, 0.0001), converter=_several)
    meta_size: int = eqx.field(static=True, default=32)
    meta_steps: int = eqx.field(static=True, default=1)
    update: Update = eqx.field(static=True, default="sequential")
    select_on: SelectOn = eqx.field(static=True, default="same")
    decoder: Head = eqx.field(static=True, default="model")
    weighting: Weighting = eqx.field(static=True, default="uniform")
    modalities: tuple[str, ...] = eqx.field(static=True, default=(), converter=_several)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        require(len(self.rates) > 0, f"{self.name}: rates must hold at least one rate")
        check(self, rates="positive", meta_size="count", meta_steps="count", update=get_args(Update))
        check(self, select_on=get_args(SelectOn), weighting=get_args(Weighting))

    def check_start(self, start: Start) -> None:
        """Refuse modalities and a decoder that the model does not have."""
        known = tuple(branches(start.params))
        taken = [name for name in known if name in self.model_names]
        require(not taken, f"{self.name}: a modality cannot be called {taken}, like a model that the method offers")
        for name in self.modalities:
            if name not in known:
                raise unknown(f"modality of {self.name}", name, known)
        for part in self.clusters(start.params).values():
            self.parts(part)

    def offered(self, start: Start) -> tuple[str, ...]:
        """The fused models and, where there are several modalities, those of each."""
        clusters = self.clusters(start.params)
        alone = (f"{kind}{m}" for m in clusters for kind in ("", "personal "))
        return (*self.model_names, *alone) if len(clusters) > 1 else self.model_names

    def clusters(self, params: PyTree) -> dict[str, PyTree]:
        """theta^m of each modality that is trained; the whole of a model that is not multimodal."""
        trained = {m: part for m, part in branches(params).items() if m in self.modalities or not self.modalities}
        return trained or {WHOLE: params}

    def parts(self, params: PyTree) -> tuple[PyTree, PyTree]:
        """(encoder, decoder) of one cluster's theta^m."""
        standard = "decoders" if branches(params) else "last"
        decoder = standard if self.decoder == "model" else self.decoder
        return separate(params, decoder, setting=f"{self.name}: decoder", also=("model",))

    def init(self, start: Start, key: PRNGKeyArray) -> Clusters:
        """The initial model of each modality."""
        del key
        parts = self.clusters(start.params)
        return Clusters(parts, {m: jnp.zeros(len(self.rates)) for m in parts})

    def view(self, shared: Clusters, client_id: Int[Array, ""]) -> dict[str, Params]:
        """Clients receive theta^m of every modality."""
        return shared.params

    def local(
        self, view: dict[str, Params], private: PyTree, client: Client, key: PRNGKeyArray
    ) -> tuple[dict[str, Trained], PyTree]:
        """Message: for each modality the trained model, the client's samples of it, and the rate's number."""
        return {m: self.trained(start, client, key) for m, start in view.items()}, private

    def trained(self, start: Params, client: Client, key: PRNGKeyArray) -> Trained:
        """Steps 2 to 8 of one client in one modality."""
        chosen = self.choice(start, client, key)
        rate = jnp.stack([jnp.asarray(rate, jnp.result_type(float)) for rate in self.rates])[chosen]

        def step(params: Params, batch: Batch | None, _: Any) -> Params:
            if self.update == "simultaneous":
                return tree.add_scaled(params, -rate, client.grad(params, batch))
            encoder, decoder = self.parts(params)
            encoder = tree.add_scaled(encoder, -rate, client.grad(encoder, batch, decoder))  # (5)
            decoder = tree.add_scaled(decoder, -rate, client.grad(decoder, batch, encoder))  # (6)
            return tree.merged(decoder, encoder)

        end = self.over_round(client, key, step, start)
        return Trained(end, client.answered(start), chosen)

    def choice(self, start: Params, client: Client, key: PRNGKeyArray) -> Int[Array, ""]:
        """The number of the rate with the least loss after T_temp steps on d; the first of equals."""
        if len(self.rates) == 1:
            return jnp.asarray(0)
        losses = self.losses(start, client, key)
        return jnp.argmin(jnp.where(jnp.isfinite(losses), losses, jnp.inf))

    def losses(self, start: Params, client: Client, key: PRNGKeyArray) -> Float[Array, "rates"]:
        """F(theta_temp, d) of each candidate, eqs. (1) to (3)."""
        d, judge = self.samples(client, key)
        first = client.grad(start, d)  # every candidate's first step goes along it

        def tried(rate: Array) -> Float[Array, ""]:
            params = tree.add_scaled(start, -rate, first)
            params = jax.lax.fori_loop(
                1, self.meta_steps, lambda _, p: tree.add_scaled(p, -rate, client.grad(p, d)), params
            )
            return client.loss(params, judge)

        rates = jnp.stack([jnp.asarray(rate, jnp.result_type(float)) for rate in self.rates])
        return jax.vmap(tried)(rates)

    def samples(self, client: Client, key: PRNGKeyArray) -> tuple[Batch, Batch]:
        """d, drawn without replacement, and the samples on which the candidates are compared."""
        key = jax.random.fold_in(key, _DRAW)
        if self.select_on == "same":
            d = client.draw(key, self.meta_size)
            return d, d
        order = permuted(key, jnp.arange(2 * self.meta_size), client.size)
        count = jnp.clip(client.size // 2, 1, self.meta_size)
        place = jnp.arange(2 * self.meta_size)
        # A client with one sample has nothing to hold out: its second place is that sample again.
        d, judge = (client.take(jnp.where((place >= low) & (place < low + count), order, -1)) for low in (0, count))
        return d, judge

    def aggregate(self, shared: Clusters, cohort: Cohort, messages: dict[str, Trained]) -> Clusters:
        """The mean over each modality's clients; without any of them in the cohort, what it was."""
        params: dict[str, Params] = {}
        chosen: dict[str, Float[Array, "rates"]] = {}
        for m, sent in messages.items():
            members = cohort.present & (sent.samples > 0)
            weights = jnp.where(members, sent.samples if self.weighting == "size" else 1.0, 0.0)
            took = jax.nn.one_hot(sent.chosen, len(self.rates)) * members[:, None]
            new = tree.weighted_mean(sent.params, weights), took.sum(0) / jnp.maximum(members.sum(), 1)
            params[m], chosen[m] = _where(jnp.any(members), new, (shared.params[m], shared.chosen[m]))
        return Clusters(params, chosen)

    def models(self, view: dict[str, Params], private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """The server's models, and the client's own after a round."""
        trained = {m: self.after_a_round(start, client, key) for m, start in view.items()}
        models = {"global": Shared(joined(view)), "personal": joined(trained)}
        if len(view) > 1:
            models |= {m: Shared(view[m]) for m in view} | {f"personal {m}": trained[m] for m in trained}
        return models

    def after_a_round(self, start: Params, client: Client, key: PRNGKeyArray) -> Params:
        """theta_n^m after the client's T steps; a client without the modality has the server's."""
        trained = self.trained(start, client, key)
        return _where(trained.samples > 0, trained.params, start)

    def diagnostics(self, shared: Clusters) -> dict[str, Float[Array, ""]]:
        """The share of the last cohort's clients that took each rate, by its number from 1."""
        if len(self.rates) == 1:
            return {}
        return {
            f"took rate {i + 1}{f' ({m})' if m else ''}": share[i]
            for m, share in shared.chosen.items()
            for i in range(len(self.rates))
        }
