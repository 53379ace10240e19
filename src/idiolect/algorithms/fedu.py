"""FedU and dFedU: every client its own model, drawn towards its neighbours' models on a graph."""

import warnings
from typing import ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, check
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models
from idiolect.core import tree
from idiolect.core.errors import ConfigError, require
from idiolect.core.tree import Params, Scalar
from idiolect.graphs import Graph, GraphWarning, mix, mixed, parse_graph
from idiolect.graphs.mixing import Links, links

Mixing = Literal["simultaneous", "box", "published"]


class Coupled(eqx.Module):
    """The server's state: every client's model, leaves (N, ...), the hub's last if there is one; and the graph."""

    params: Params
    links: Links


class Neighbours(NamedTuple):
    """What a new client receives: the weighted mean of its neighbours' models, and the sum of the weights."""

    centre: Params
    weight: Float[Array, ""]


class GraphTrainer(Trainer):
    """What FedU and dFedU share: local SGD, then one mixing step on the graph.

    A new client is a new vertex with an edge to every known client, of the mean weight of all pairs on the graph
    (1 on the complete graph), and to the hub, of the mean weight to it. With the others' models held, its part of
    the objective is F(w) + (eta / 2) sum_l a_l ||w - w_l||^2. With a = sum_l a_l and m = sum_l a_l w_l / a the sum is
    a ||w - m||^2 and a constant, so it needs no more than a and m. It starts at m; a round is R steps of SGD, then
        w <- w_R - mu R eta a (w_R - m),
    the mixing step of a round in which all clients take part.
    """

    model_names: ClassVar[tuple[str, ...]] = ("personal",)

    coupling: Scalar = 0.01
    graph: Graph | str = eqx.field(static=True, default="complete")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, coupling="nonnegative")
        if isinstance(self.graph, str):
            parse_graph(self.graph)
        elif not isinstance(self.graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"{self.name}: graph must be a name ('complete') or a Graph, not {type(self.graph).__name__}; "
                "idiolect.graphs.from_dense(weights) makes one of a symmetric (N, N) array"
            )

    @property
    def steps(self) -> int:
        """R."""
        return self.epochs or self.local_steps

    @property
    def step(self) -> Scalar:
        """mu R eta, the weight of the mixing step."""
        return self.rate * self.steps * self.coupling

    @property
    def mixing_step(self) -> Scalar:
        """The weight of the step that this method's server takes."""
        return self.step

    def check_start(self, start: Start) -> None:
        """Refuse a graph of other clients; warn if the mixing step drives the models apart."""
        graph = start.graph(self.graph)
        if problem := self.beyond(graph):
            warnings.warn(f"{self.name}: {problem}", GraphWarning, stacklevel=2)

    def graph_used(self, start: Start) -> Graph:
        """The graph of its clients."""
        return start.graph(self.graph)

    def beyond(self, graph: Graph) -> str:
        """What is wrong if the mixing step is beyond the graph's limit; else nothing."""
        rate, coupling = (np.ravel(part) for part in np.broadcast_arrays(self.rate, self.coupling))
        worst = np.argmax(rate * coupling)
        limit = graph.mixing_limit(float(rate[worst]), self.steps, float(coupling[worst]))
        return (
            f"mu R eta rho = {limit.value:.4g} is not below 2, so mixing drives the models apart when all clients "
            f"take part; coupling must stay below {limit.coupling:.4g} (rho = {graph.largest:.4g})"
            if limit.value >= 2
            else ""
        )

    def init(self, start: Start, key: PRNGKeyArray) -> Coupled:
        """One model for each client, and for the graph's hub if it has one, the last row."""
        del key
        graph = start.graph(self.graph)
        rows = start.clients + (graph.hub is not None)
        params = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rows, *leaf.shape)), start.params)
        return Coupled(params, links(graph))

    def view(self, shared: Coupled, client_id: Int[Array, ""]) -> Params:
        """The client's own model and nobody else's."""
        return tree.gather(shared.params, client_id)

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: w_{k,R}."""
        return self.train(view, client, key), private

    def aggregate(self, shared: Coupled, cohort: Cohort, messages: Params) -> Coupled:
        """The cohort's models after the mixing step among themselves; the others as they were."""
        return self._mix(shared, cohort, messages, self.mixing_step, in_place=False)

    def _mix(self, shared: Coupled, cohort: Cohort, messages: Params, step: Scalar, *, in_place: bool) -> Coupled:
        graph, nowhere = shared.links, cohort.population + 1
        rows = jnp.where(cohort.present, cohort.ids, nowhere)  # padding scatters to nowhere
        if graph.hub is not None:
            rows = jnp.append(rows, cohort.population)
            messages = jax.tree.map(lambda new, old: jnp.concatenate([new, old[-1:]]), messages, shared.params)
        kept = mix(graph, cohort.ids, cohort.present, messages, step, in_place=in_place)
        params = jax.tree.map(lambda old, new: old.at[rows].set(new, mode="drop"), shared.params, kept)
        return Coupled(params, graph)

    def models(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """personal: w_k."""
        del private, client, key
        return {"personal": view}

    def new_view(self, shared: Coupled) -> Neighbours:
        """m and a of the edges that a new client has."""
        graph = shared.links
        # A sole known client has no pair, and is the only neighbour.
        pair = jnp.sum(graph.weights) / (graph.clients * (graph.clients - 1)) if graph.clients > 1 else jnp.ones(())
        edges = jnp.full(graph.clients, pair)
        if graph.hub is not None:
            edges = jnp.append(edges, jnp.mean(graph.hub))
        weight = jnp.sum(edges)
        # Without any edge the new client begins where the others are, and nothing draws it.
        return Neighbours(tree.weighted_mean(shared.params, jnp.where(weight > 0, edges, 1.0)), weight)

    def new_private(self, view: Neighbours, start: Start, key: PRNGKeyArray) -> Params:
        """The mean of the neighbours' models."""
        del start, key
        return view.centre

    def new_round(self, view: Neighbours, private: Params, client: Client, key: PRNGKeyArray) -> Params:
        """Local SGD, then the mixing step with neighbours that do not move."""
        trained = self.train(private, client, key)
        return tree.add_scaled(trained, -self.mixing_step * view.weight, tree.subtract(trained, view.centre))

    def new_models(self, view: Neighbours, private: Params, client: Client, key: PRNGKeyArray) -> Models:
        """personal: the new client's own model."""
        del view, client, key
        return {"personal": private}


class FedU(GraphTrainer):
    """FedU: min_W sum_k F_k(w_k) + (eta / 2) W'LW, W'LW = sum over edges {k, l} of a_kl ||w_k - w_l||^2.

    A round on client k of the cohort S, from w_k: R steps of SGD, w_{k,r+1} = w_{k,r} - mu grad F_k(w_{k,r}).
    The server, for all k in S at once (section IV-A, the last equation but one):
        w_k <- w_{k,R} - mu R eta sum_{l in N_k and S} a_kl (w_{k,R} - w_{l,R})
    Clients outside the cohort keep their models and draw nobody, as in the paper's text and in its published code.
    A smaller cohort so mixes less: on the complete graph a neighbour is there with probability (S - 1) / (N - 1), and
    that is the share of the full step which a client's step has in expectation.

    The box says otherwise (Algorithm 1, lines 13 to 15, and Algorithm 3): w_{l,R} = w_l for all l outside S, and the
    sum is over all of N_k; again only the clients of S move. mixing = "box" does that.

    The factor of eta: the paper's objective (1) is sum_k F_k + eta W'LW, whose gradient is 2 eta L W, but Algorithm
    1 steps along eta L W, the gradient of (eta / 2) W'LW. So a fixed point of Algorithm 1 with eta solves (1) with
    eta / 2. On a star its problem is pFedMe's with lambda = eta, as section III-B says.

    rate: mu. local_steps: R. coupling: eta. epochs, batch_size, batches: see `Trainer`. With epochs, R is their
    number, as in the published code: one step for all clients, without which mixing would not keep the models'
    mean. Client k makes p_k = epochs * ceil(n_k / batch_size) local steps then, so its F_k has the weight
    p_k / epochs in what is minimised.
    graph: a name such as "complete", "random(density=0.3, seed=1)" or "by_labels" (docs/graphs.md), or, in Python,
    a `Graph`. A hub is the server's own model w_0 with F_0 = 0: it takes part in every mixing step.
    mixing: "simultaneous" is the text's step, "box" that of the algorithm box; with all clients they are the same.
    "published" is the step of the paper's published code: half as long, and one client after the other in the order
    of their numbers, each seeing what those before it have become.

    Model: `personal` is w_k.

    Warns (`GraphWarning`) if the mixing step drives the models apart: mu R eta rho >= 2, rho = ||L||.

    Source: Dinh, Vu, Tran, Dao, Zhang, "A New Look and Convergence Rate of Federated Multi-Task Learning with
    Laplacian Regularization", IEEE TNNLS 2022, Algorithm 1.
    """

    name: ClassVar[str] = "fedu"
    title: ClassVar[str] = "FedU"
    summary: ClassVar[str] = "Laplacian regularisation: each client's model stays near its neighbours' on a graph"
    source: ClassVar[str] = "Dinh et al., IEEE TNNLS 2022, Algorithm 1"

    mixing: Mixing = eqx.field(static=True, default="simultaneous")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, mixing=get_args(Mixing))

    @property
    def mixing_step(self) -> Scalar:
        """The published code's is half as long."""
        return self.step / 2 if self.mixing == "published" else self.step

    def beyond(self, graph: Graph) -> str:
        """As for Algorithm 1; one after the other, models stay together if (1/2) mu R eta d_k < 2 for all degrees."""
        if self.mixing != "published":
            return super().beyond(graph)
        value = float(np.max(self.step)) / 2 * float(graph.degrees.max())
        return f"(1/2) mu R eta d = {value:.4g} is not below 2, so mixing may diverge; lower coupling" * (value >= 2)

    def aggregate(self, shared: Coupled, cohort: Cohort, messages: Params) -> Coupled:
        """The mixing step among the cohort, with all neighbours, or one after the other."""
        if self.mixing == "box":
            return self._mix_all(shared, cohort, messages)
        if self.mixing == "published":
            return self._mix(shared, cohort, messages, self.mixing_step, in_place=True)
        return super().aggregate(shared, cohort, messages)

    def _mix_all(self, shared: Coupled, cohort: Cohort, messages: Params) -> Coupled:
        """Line 14 with w_{l,R} = w_l for the absent (line 13), who then keep their models (line 15)."""
        everyone = jnp.arange(cohort.population)
        rows = jnp.where(cohort.present, cohort.ids, cohort.population + 1)  # padding scatters to nowhere
        ends = jax.tree.map(lambda old, new: old.at[rows].set(new, mode="drop"), shared.params, messages)
        mixed = mix(shared.links, everyone, jnp.ones(cohort.population, bool), ends, self.step)
        if shared.links.hub is not None:
            rows = jnp.append(rows, cohort.population)

        def moved(old: Array, new: Array) -> Array:
            return old.at[rows].set(new.at[rows].get(mode="fill", fill_value=0), mode="drop")

        return Coupled(jax.tree.map(moved, shared.params, mixed), shared.links)


class DFedU(GraphTrainer):
    """dFedU: FedU without a server; each client sends its model to its neighbours and mixes what it receives.

        w_k <- w_{k,R} - mu R eta sum_{l: a_kl > 0} a_kl (w_{k,R} - w_{l,R})                          (line 12)

    All clients take part in every round, so a smaller cohort is refused. What a client computes from its own model
    and its neighbours' is `graphs.mixed`, the very step of FedU's server. A hub would be a server and is refused.

    coupling: eta. graph, the other hyper-parameters, model, warning: as `FedU`.

    Source: as `FedU`, Algorithm 2.
    """

    name: ClassVar[str] = "dfedu"
    title: ClassVar[str] = "dFedU"
    summary: ClassVar[str] = "FedU without a server: neighbours exchange their models"
    source: ClassVar[str] = "Dinh et al., IEEE TNNLS 2022, Algorithm 2"
    everyone: ClassVar[bool] = True

    def check_start(self, start: Start) -> None:
        """Refuse a graph with a hub."""
        hub = start.graph(self.graph).hub is not None
        require(not hub, "dfedu has no server, so its graph cannot have a hub (a star); use fedu")
        super().check_start(start)

    def peers(self, start: Start) -> Graph:
        """The graph of its clients."""
        return start.graph(self.graph)

    def mix(self, message: Params, others: Params, weights: Float[Array, "others"]) -> Params:
        """w_{k,R} - mu R eta sum_l a_kl (w_{k,R} - w_{l,R})."""
        return mixed(message, others, weights, self.step)
