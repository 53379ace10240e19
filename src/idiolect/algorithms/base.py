"""The contract of a method: pure functions for ONE client, and one for the server.

A method is an `equinox.Module`: a frozen dataclass that is also a pytree. Its float hyper-parameters are leaves (a
grid of them is one more batch axis); its integers and names are static. It never sees a batch of clients, never keeps
state in Python, and never sees validation or test data.

    shared  = init(start, key)                           the server's state
    private = init_private(start, key)                   one client's own state; never sent
    view    = view(shared, client_id)                    what the client receives
    message, private = local(view, private, client, key) what runs on the client
    shared  = aggregate(shared, cohort, messages)        what runs on the server
    {name: params} = models(view, private, client, key)  the models that a client can be evaluated with

A method that neighbours can run without a server names its graph in `peers`, and its step among them is `mix`:

    view = mix(message, the neighbours' messages, weights of the edges)

A method may say that its server needs only the sum of the messages (`Summing`).

For the readers of its results a method may add remarks, diagnostics, relations and its graph; training does not need
them. It has one by defining the function; nothing is inherited or registered. Reports call `remarks_of`,
`diagnostics_of`, `relations_of` and `client_graph_of`, which also work for methods without it.

Four more say what a client gets that joins after training: new_view, new_private, new_round, new_models. Their
defaults are the method's own functions with the shared state held fixed.

The message and the private state are separate values: what a method does not put into its message never leaves the
client. docs/contract.md shows how eight very different methods fit.
"""

from abc import abstractmethod
from collections.abc import Hashable
from inspect import Parameter, signature
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.parts.rows_used import RowsUsed, by_settings, widest_rank
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.errors import require, unknown
from idiolect.core.settings import LARGEST, MOST
from idiolect.data.federated import FederatedData, TaskKind
from idiolect.data.schema.columns import Categories
from idiolect.graphs import Graph, graph_for


class Graphs:
    """The graphs that a method has asked for on one federation, each built once."""

    def __init__(self, data: FederatedData) -> None:
        self._data = data
        self._built: dict[Graph | str, Graph] = {}

    def __call__(self, graph: Graph | str) -> Graph:
        """See `Start.graph`."""
        if graph not in self._built:
            self._built[graph] = graph_for(graph, self._data)
        return self._built[graph]

    @property
    def contents(self) -> Hashable:
        """Equal for equal graphs, by their arrays."""
        arrays = ((g.offsets, g.neighbours, g.weights, g.hub) for g in self._built.values())
        return tuple(tuple(None if a is None else (a.dtype.str, a.tobytes()) for a in graph) for graph in arrays)


class Start(eqx.Module):
    """What a server knows before the first round: the model, and of the federation what its clients announce.

    params: the initial model. sizes: (N,) training samples of each client. Inside a compiled program both may be
    traced; where the method is only checked, params are shapes. All else is known at any time:
    clients: N. capacity: training samples of the largest client. task, num_outputs, feature_shape, categories: see
    `FederatedData`.
    """

    params: PyTree
    sizes: Int[Array | np.ndarray, "clients"]
    clients: int = eqx.field(static=True)
    capacity: int = eqx.field(static=True)
    task: TaskKind = eqx.field(static=True)
    num_outputs: int = eqx.field(static=True)
    feature_shape: tuple[int, ...] = eqx.field(static=True)
    graphs: Graphs = eqx.field(static=True, repr=False)
    categories: Categories = eqx.field(static=True, default=())

    def graph(self, graph: Graph | str) -> Graph:
        """The graph of these clients that has this name, or the user's own, checked; see `graphs.graph_for`.

        The first call warns (`GraphWarning`) of a graph that falls apart. It is no array of a compiled program: keep
        what the rounds need of it, `graphs.mixing.links`, in the server's state.
        """
        return self.graphs(graph)


def start_of(data: FederatedData, params: PyTree) -> Start:
    """The start of a run on a federation: only its training split is used."""
    sizes = data.train.sizes
    return Start(
        params,
        sizes,
        clients=data.num_clients,
        capacity=int(sizes.max()),
        task=data.task,
        num_outputs=data.num_outputs,
        feature_shape=data.feature_shape,
        graphs=Graphs(data),
        categories=data.categories,
    )


Weighting = Literal["uniform", "size"]


class Cohort(NamedTuple):
    """The clients whose messages reached the server in one round.

    ids: (S,) client numbers; sizes: (S,) their training samples; present: (S,) False for padding (binomial
    sampling draws a different number each round); population: N; total_size: training samples of all N;
    expected: S, the expected number of clients per round, so that a client takes part with probability S / N.
    """

    ids: Int[Array, "clients"]
    sizes: Float[Array, "clients"]
    present: Bool[Array, "clients"]
    population: int
    total_size: Float[Array, ""]
    expected: float

    def weights(self, weighting: Weighting) -> Float[Array, "clients"]:
        """Unnormalised weight of each message: 1 or its number of training samples; 0 for padding."""
        raw = self.sizes if weighting == "size" else jnp.ones_like(self.sizes)
        return jnp.where(self.present, raw, 0)


class Algorithm(eqx.Module):
    """Base of every method; the defaults are those of a method with one shared model and no private state."""

    name: ClassVar[str]
    title: ClassVar[str]
    """The name as the paper writes it, for figures; tables have `name`, which a user types."""
    summary: ClassVar[str]
    source: ClassVar[str]
    model_names: ClassVar[tuple[str, ...]] = ("global",)
    """The models that every client can be evaluated with in every run, the method's own first; see `offered`."""
    everyone: ClassVar[bool] = False
    """All clients must take part in every round: a smaller cohort is refused before a run."""
    by_curvature: ClassVar[bool] = True
    """Whether `rate` is a step along a gradient, which 1 / curvature suits. A tree's shrinkage is none."""
    batched: ClassVar[bool] = True
    """Whether clients may be batched (vmap). Loops over a client's own rows are faster one client after the other."""
    sends: ClassVar[bool] = True
    """Whether a client sends anything."""
    settling: ClassVar[int] = 0
    """Rounds before which a validation loss that does not fall says nothing, and a run is not stopped for it."""

    def __new__(cls, *_: Any, **settings: Any) -> Any:
        """Raise `ConfigError` for a setting that the method does not have, with the one that may be meant."""
        parameters = signature(cls.__init__).parameters
        if not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
            for name in settings:
                if name not in parameters:
                    raise unknown(f"setting of {cls.name}", name, [known for known in parameters if known != "self"])
        return super().__new__(cls)

    def check_start(self, start: Start) -> None:
        """Raise `ConfigError` if this federation or this model is not for the method; warn of what will go wrong.

        The runtime calls it once, on the method as the user made it, and then traces `init` and `init_private`:
        whatever these raise comes before anything runs or is written.
        """
        del start

    def carried(self, start: Start) -> int:
        """How many numbers training one client changes in each step: those of a model, unless it sums more.

        Clients that change more numbers than a cache holds are trained one after the other; see `default_block`.
        """
        return sum(leaf.size for leaf in jax.tree.leaves(start.params))

    def init(self, start: Start, key: PRNGKeyArray) -> PyTree:
        """The server's state before the first round: by default the initial model."""
        del key
        return start.params

    def init_private(self, start: Start, key: PRNGKeyArray) -> PyTree:
        """One client's private state before its first round; None if the method keeps none."""
        del start, key
        return None

    def view(self, shared: PyTree, client_id: Int[Array, ""]) -> PyTree:
        """What one client receives of the server's state: usually all of it."""
        del client_id
        return shared

    @abstractmethod
    def local(self, view: PyTree, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[PyTree, PyTree]:
        """Run one round on one client; return (message, private state)."""

    @abstractmethod
    def aggregate(self, shared: PyTree, cohort: Cohort, messages: PyTree) -> PyTree:
        """Combine the cohort's messages, leaves (S, ...), into the server's next state."""

    def models(self, view: PyTree, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """The client's models by name; what nobody asks for is never computed.

        Each is parameters of the run's module or a `Predictor`, the client's own unless it is given as `Shared`.
        """
        del private, client, key
        return {"global": Shared(view)}

    def evaluated(self, view: PyTree, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """`models`, and what else is evaluated by the method's settings."""
        return self.models(view, private, client, key)

    def offered(self, start: Start) -> tuple[str, ...]:
        """`model_names`, and what else the method offers by its settings, the data and the model."""
        del start
        return self.model_names

    def new_view(self, shared: PyTree) -> PyTree:
        """What a client that never trained receives of the trained state: by default what every client receives.

        Raises `ConfigError` if a new client cannot be served: by default, if the view is a row of the client's own.
        """
        require(
            not self.reads_client(shared),
            f"{self.name}: its server keeps a row per client and has none for new clients",
        )
        return self.view(shared, jnp.asarray(0, jnp.int32))

    def reads_client(self, shared: PyTree) -> bool:
        """Whether clients receive different views of this state, or of one with these shapes."""
        traced = jax.make_jaxpr(self.view)(shared, jnp.asarray(0, jnp.int32)).jaxpr
        read = [*traced.outvars, *(atom for equation in traced.eqns for atom in equation.invars)]
        return any(atom is traced.invars[-1] for atom in read)

    def new_private(self, view: PyTree, start: Start, key: PRNGKeyArray) -> PyTree:
        """A new client's private state before its first round; start: the run's, with the new clients' capacity."""
        del view
        return self.init_private(start, key)

    def new_round(self, view: PyTree, private: PyTree, client: Client, key: PRNGKeyArray) -> PyTree:
        """A new client's private state after one more round; nothing is sent, so the view stays as it is.

        By default `local`, its message thrown away. Methods without a private state need no round.
        """
        return self.local(view, private, client, key)[1]

    def new_models(self, view: PyTree, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """A new client's models by name: by default as any client's."""
        return self.evaluated(view, private, client, key)

    def peers(self, start: Start) -> Graph | None:
        """The graph on which the method runs without a server, by `mix` among neighbours; None if it needs one."""
        del start
        return None

    def mix(self, message: PyTree, others: PyTree, weights: Float[Array, "others"]) -> PyTree:
        """What a client receives next, of its own message and its neighbours', leaves (others, ...), and the edges.

        The same as `aggregate` computes for it. A neighbour whose message is missing has weight 0.
        """
        raise NotImplementedError(f"{self.name} has no step among neighbours")

    def rows_used(self, rows: int) -> RowsUsed | None:
        """Count the fewest of a client's `rows` training rows that enter one step and one message.

        By default from the settings of mini-batches, see `LocalSteps`; None if the method has none. Sites refuse a
        method that sends something and does not say of how many rows it is made.
        """
        return by_settings(self, rows)

    def rank(self, start: Start, message: PyTree) -> int:
        """The number of rows up to which a linear system could give rows back, from the shapes of a message."""
        del start
        return widest_rank(message)

    def training_data(self, data: FederatedData) -> FederatedData:
        """The federation to train on; only `Global`, which pools all clients, changes it."""
        return data


def check(owner: Algorithm, **bounds: Any) -> None:
    """Check hyper-parameters: field=a tuple of allowed values, or the name of a range.

    "positive", "nonnegative"; "share": 0 to 1; "decay": 0 to below 1; "count": a whole number of at least 1;
    "whole": one that may be 0. Arrays and tuples are checked entry by entry; traced values (a sweep's batch axis
    inside a compiled function) by whoever made them.
    """
    for field, bound in bounds.items():
        value = getattr(owner, field)
        label = f"{owner.name}: {field} = {value!r}"
        if isinstance(bound, tuple):
            require(value in bound, f"{label} is not one of {', '.join(map(repr, bound))}")
        elif any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
            continue
        elif bound in ("count", "whole"):
            require(isinstance(value, int), f"{label} must be a whole number")
            if bound == "count":
                require(value > 0, f"{label} must be greater than 0")
            else:
                require(value >= 0, f"{label} must not be negative")
            require(value <= MOST, f"{label} must not be greater than {MOST:,}, a compiled program's largest")
        else:
            require(np.asarray(value).dtype.kind in "iuf", f"{label} must be a number")
            require(bool(np.isfinite(value).all()), f"{label} must be a finite number")
            require(bool((np.abs(value) <= LARGEST).all()), f"{label} must not be greater than {LARGEST:.3g}")
            if bound == "positive":
                require(bool((np.asarray(value) > 0).all()), f"{label} must be greater than 0")
            else:
                require(bool((np.asarray(value) >= 0).all()), f"{label} must not be negative")
            if bound == "share":
                require(bool((np.asarray(value) <= 1).all()), f"{label} must not be greater than 1")
            if bound == "decay":
                require(bool((np.asarray(value) < 1).all()), f"{label} must be less than 1")


@runtime_checkable
class Summing(Protocol):
    """A method with a server that needs the sum of the cohort's messages, and only few numbers of each message.

        aggregate(shared, cohort, messages) = of_sum(shared, cohort, sum of messages, of_each of every message)

    A simulation adds up the messages as they are made, and keeps none of them.
    """

    def of_each(self, shared: PyTree, message: PyTree) -> PyTree:
        """What the server needs of one client's message in addition to the sum."""
        ...

    def of_sum(self, shared: PyTree, cohort: Cohort, total: PyTree, each: PyTree) -> PyTree:
        """The server's next state. total: the present clients' messages added up; each: leaves (S, ...)."""
        ...


def aggregated(method: Summing, shared: PyTree, cohort: Cohort, messages: PyTree) -> PyTree:
    """`aggregate` of a method that needs the sum of messages, from all of them, leaves (S, ...)."""
    each = jax.vmap(lambda message: method.of_each(shared, message))(messages)
    total = tree.weighted_sum(messages, cohort.present.astype(jnp.result_type(float)))
    return method.of_sum(shared, cohort, total, each)


@runtime_checkable
class Remarks(Protocol):
    """A method with remarks that readers of its results need."""

    def remarks(self, params: PyTree) -> tuple[str, ...]:
        """Sentences about this method with this model; `params` may be shapes."""
        ...


@runtime_checkable
class Diagnosed(Protocol):
    """A method with numbers on its progress, such as MOCHA's duality gap."""

    def diagnostics(self, shared: PyTree) -> dict[str, Float[Array, ""]]:
        """Scalars by name. They are recorded at every evaluation."""
        ...


@runtime_checkable
class Related(Protocol):
    """A method that learns how clients are related."""

    def relations(self, shared: PyTree) -> Float[Array, "clients clients"] | None:
        """The learned relation matrix, symmetric; None if this run's settings learn none."""
        ...


@runtime_checkable
class OnGraph(Protocol):
    """A method that relates clients by a graph, also where a server does the mixing."""

    def graph_used(self, start: Start) -> Graph | None:
        """The graph of the clients."""
        ...


def remarks_of(algorithm: Algorithm, params: PyTree) -> tuple[str, ...]:
    """The method's remarks with this model; none for most methods."""
    return algorithm.remarks(params) if isinstance(algorithm, Remarks) else ()


def diagnostics_of(algorithm: Algorithm, shared: PyTree) -> dict[str, float]:
    """The method's diagnostics of a server state, by name; none for most methods."""
    values = algorithm.diagnostics(shared) if isinstance(algorithm, Diagnosed) else {}
    return {name: float(value) for name, value in values.items()}


def relations_of(algorithm: Algorithm, shared: PyTree) -> Float[Array, "clients clients"] | None:
    """The relation matrix that the method has learned; None for most methods."""
    return algorithm.relations(shared) if isinstance(algorithm, Related) else None


def client_graph_of(algorithm: Algorithm, start: Start) -> Graph | None:
    """The graph by which the method relates clients: its own, or that of its neighbours; None if it has none."""
    return algorithm.graph_used(start) if isinstance(algorithm, OnGraph) else algorithm.peers(start)
