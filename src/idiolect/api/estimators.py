"""scikit-learn estimators: every group of rows is a client and gets a model of its own."""

import copy
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal, cast

import equinox as eqx
import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int, PyTree, Shaped
from scipy.special import softmax

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    from idiolect.core.errors import ConfigError

    raise ConfigError(
        f"the estimators need scikit-learn 1.6 or later ({error}): pip install 'idiolect[sklearn]'"
    ) from error

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.parts.body_head import Parted
from idiolect.api.arguments import (
    Method,
    check_model_argument,
    method_of,
    rate_of,
    rounds_of,
    specification_of,
    whole,
)
from idiolect.api.fitted import Basis, federation, filled, kept, models_of, stacked, train
from idiolect.api.run import ClientModels
from idiolect.client.objective import objective_of
from idiolect.client.predictor import Shared
from idiolect.core import tree
from idiolect.core.errors import ConfigError, require
from idiolect.core.random import MOST_SEED, model_key
from idiolect.core.settings import checked
from idiolect.data.federated import TaskKind
from idiolect.models import build
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.predict import outputs_of
from idiolect.study.spec.assemble import problem_of

SHARED = "global"
_EVERYONE = "all"


def column_of(groups: Any, rows: int) -> Shaped[np.ndarray, "n"]:
    """The client of each row; raises `ConfigError` on another shape and on missing names."""
    names = np.asarray(groups)
    require(
        names.shape == (rows,), f"groups must name the client of each of {rows} rows; their shape is {names.shape}"
    )
    missing = np.flatnonzero(pd.isna(names))
    if len(missing):
        raise ConfigError(f"groups: row {missing[0]} has no client; name it, or leave the row out")
    return names


def names_of(groups: Any, rows: int) -> Shaped[np.ndarray, "n"]:
    """As `column_of`; without groups all rows are one client's."""
    return np.full(rows, _EVERYONE) if groups is None else column_of(groups, rows)


def clients_of(names: Shaped[np.ndarray, "n"]) -> Shaped[np.ndarray, "clients"]:
    """The distinct clients, sorted; raises `ConfigError` if numbers and texts are mixed."""
    try:
        return np.unique(names)
    except TypeError as error:
        raise ConfigError(f"groups must be all numbers or all texts: {error}") from error


def rows_of(names: Any, clients: Shaped[np.ndarray, "clients"]) -> Int[np.ndarray, "n"]:
    """The number of each row's client, -1 if it is none of `clients`.

    Raises `ConfigError` for texts where clients are numbers, and the reverse: none could ever be known.
    """
    known: Sequence[Any] = clients.tolist()
    number = {name: index for index, name in enumerate(known)}
    asked: Sequence[Any] = np.asarray(names).tolist()
    if asked and isinstance(asked[0], str) != isinstance(known[0], str):
        raise ConfigError(f"groups hold {asked[0]!r}, but the clients that fit has seen are such as {known[0]!r}")
    return np.array([number.get(name, -1) for name in asked], int)


def asked_rows(
    names: Shaped[np.ndarray, "n"] | None, count: int, clients: Shaped[np.ndarray, "clients"]
) -> tuple[Int[np.ndarray, "n"], str]:
    """(the number of each row's client, -1 if `fit` has not seen it; the first such client in words, "" for none).

    names: of the rows' clients; None: the rows have none.
    """
    if names is None:
        return np.full(count, -1), "rows without groups" if count else ""
    rows = rows_of(names, clients)
    unseen = names[rows < 0].tolist()
    return rows, f"client {unseen[0]!r}, unknown to fit" if unseen else ""


def share_of(validation_fraction: Any) -> float:
    """The share of rows that is held out. Raises `ConfigError` for other numbers than those between 0 and 1."""
    wrong = f"validation_fraction = {validation_fraction!r} must be"
    inside = isinstance(validation_fraction, Real) and 0 < float(validation_fraction) < 1
    require(inside, f"{wrong} a number above 0 and below 1")
    return float(validation_fraction)


def seed_in(random_state: Any) -> int:
    """The seed that scikit-learn's `random_state` stands for."""
    if isinstance(random_state, int | np.integer) and 0 <= random_state <= MOST_SEED:
        return int(random_state)
    return int(check_random_state(random_state).randint(MOST_SEED))


class _Personalized(BaseEstimator):
    """What both estimators share: groups, features, training, and which model answers a row."""

    _task: TaskKind
    n_features_in_: int

    def __init__(
        self,
        method: Any = "fedavg-ft",
        model: Any = "auto",
        *,
        settings: Mapping[str, Any] | Any = None,
        rounds: int | Literal["auto"] | Any = "auto",  # scikit-learn wants any value taken here, and checked in fit
        rate: float | Literal["auto", "method"] | Any = None,
        validation_fraction: float | Any = 0.2,
        cohort: float | Any = None,
        standardise: bool | Any = True,
        random_state: Any = None,
    ) -> None:
        self.method, self.model, self.settings = method, model, settings
        self.rounds, self.rate, self.validation_fraction = rounds, rate, validation_fraction
        self.cohort, self.standardise, self.random_state = cohort, standardise, random_state

    def client_model(self, client: Any) -> eqx.Module:
        """One client's own model, to be called on one sample as it was trained on: standardised, if that is on.

        client: as `groups` named it. Raises `ConfigError` for a client that `fit` has not seen.
        """
        check_is_fitted(self)
        row = int(rows_of([client], self.clients_)[0])
        require(row >= 0, f"client {client!r} was not among the groups of fit; see clients_")
        params, static = self._parts()
        own = filled(self._own, params)
        return objective_of(static, self._task).model(tree.gather(own, row % _rows_in(own)))

    @property
    def models_(self) -> ClientModels:
        """Every client's own model by name, each built when it is asked for; see `client_model`."""
        check_is_fitted(self)
        return ClientModels(self.clients_.tolist(), self.client_model)

    def _fit(self, x: Float[np.ndarray, "n d"], y: Shaped[np.ndarray, "n"], groups: Any, classes: int) -> None:
        """Train on encoded labels; sets what `fit` leaves behind. classes: their number, 0 for a regression."""
        rounds, share, seed = rounds_of(self.rounds), share_of(self.validation_fraction), seed_in(self.random_state)
        rate = rate_of(self.rate if self.rate is not None else "auto" if isinstance(rounds, str) else "method")
        self._grouped = groups is not None
        names = names_of(groups, len(x))
        self.clients_ = clients_of(names)
        self.scaler_: Any = StandardScaler().fit(x) if self.standardise else None
        features, rows = self._features(x), rows_of(names, self.clients_)
        share = share if isinstance(rounds, str) else 0.0
        clients, title = tuple(str(name) for name in self.clients_), type(self).__name__
        data = federation(title, features, y, rows, clients, self._task, classes, share, seed)
        given = self._given()
        algorithm = method_of(given)
        # Whatever set_params says later, these are what was trained.
        self._built, self._classes = (self._model(algorithm), classes or 1, seed), classes
        check_model_argument(self._built[0])
        problem = problem_of(data, self._built[0], seed)
        cohort = checked(float | None, self.cohort, "cohort")
        cohort = None if cohort is None else min(cohort, data.num_clients)
        use_compilation_cache()
        spec = {} if rate == "method" else specification_of(given)
        done = train(problem, algorithm, spec, rounds=rounds, rate=rate, cohort=cohort, seed=seed)
        self.n_iter_, self.settings_ = done.rounds, dict(done.settings)
        self._name = algorithm.model_names[0]
        models = models_of(done, sorted({self._name, SHARED} & {*done.simulation.offered}))
        self._own = kept(stacked(models[self._name]), problem.params)
        # Whoever is asked has the same shared model.
        shared = jax.tree.map(lambda leaf: leaf[:1], stacked(models[SHARED])) if SHARED in models else None
        self._shared = None if shared is None else kept(shared, problem.params)
        self._basis = Basis.of(done, cohort)

    def _joined(self, x: Any, y: Shaped[np.ndarray, "n"], groups: Any, rounds: Any) -> Any:
        """`personalize`, for encoded labels."""
        require(self._grouped, "personalize is for further groups, but fit had none: give fit groups=")
        rounds = None if rounds is None else whole("rounds", rounds, least=1)
        names = column_of(groups, len(x))
        known = rows_of(names, self.clients_) >= 0
        if known.any():
            raise ConfigError(f"client {names[known].tolist()[0]!r} has a model already; personalize is for new ones")
        new = clients_of(names)
        clients, title, classes = tuple(str(name) for name in new), type(self).__name__, self._classes
        data = federation(title, self._features(x), y, rows_of(names, new), clients, self._task, classes)
        before = tuple(str(name) for name in self.clients_[: len(self._basis.sizes)])
        blank = self._basis.blank(title, before, self.n_features_in_, self._task, classes)
        problem = problem_of(blank, self._built[0], self._built[2])
        made = self._basis.personalize(problem, data, self._built[2], rounds)
        found = models_of(made, [self._name])[self._name]
        joined = copy.copy(self)
        joined.clients_ = np.concatenate([self.clients_, new])
        if not (isinstance(found, Shared) and found.group is None):
            pair = filled(self._own, problem.params), filled(kept(stacked(found), problem.params), problem.params)
            joined._own = kept(jax.tree.map(lambda *parts: np.concatenate(parts), *pair), problem.params)
        return joined

    def _answers(self, x: Any, groups: Any) -> Float[np.ndarray, "n ..."]:
        """The outputs for every row, (n, outputs) or (n,), by the client's own model or else the shared one."""
        check_is_fitted(self)
        x = self._features(validate_data(self, x, dtype=np.float64, reset=False))
        rows = self._answered_by(groups, len(x))
        params, static = self._parts()
        objective = objective_of(static, self._task)
        found: np.ndarray | None = None
        for mine, models in ((rows >= 0, self._own), (rows < 0, self._shared)):
            if models is not None and mine.any():
                models = filled(models, params)
                owners = np.maximum(rows[mine], 0) % _rows_in(models)  # 0 where one model is everyone's
                outputs, _ = outputs_of(objective, models, owners, x[mine])
                found = np.empty((len(x), *outputs.shape[1:])) if found is None else found
                found[mine] = outputs
        return cast(np.ndarray, found)

    @property
    def has_shared_(self) -> bool:
        """Whether rows of clients that `fit` has not seen are answered."""
        check_is_fitted(self)
        return self._shared is not None

    def _answered_by(self, groups: Any, count: int) -> Int[np.ndarray, "n"]:
        """The number of the client whose model answers each row; -1: the shared model does."""
        if not self._grouped:
            return np.zeros(count, int)
        names = None if groups is None else column_of(groups, count)
        rows, stranger = asked_rows(names, count, self.clients_)
        if self._shared is None and stranger:
            raise ConfigError(
                f"method {self.method!r} has no shared model that could predict {stranger}; "
                f"give groups= of known clients (personalize gives further ones their models from rows with labels), "
                f"or take a method with a model '{SHARED}' such as 'fedavg-ft'"
            )
        return rows

    def _features(self, x: Any) -> Float[np.ndarray, "n d"]:
        with np.errstate(over="ignore"):  # reported below
            features = (x if self.scaler_ is None else self.scaler_.transform(x)).astype(np.float32)
        require(
            bool(np.isfinite(features).all()),
            "a feature is infinity or too large a value for float32, in which models compute; rescale it",
        )
        return features

    def _given(self) -> Method:
        """The method with its settings, as `method_of` takes it."""
        settings = {} if self.settings is None else self.settings
        require(
            isinstance(settings, Mapping), f"settings must be a dictionary, as {{'rate': 0.05}}, not {settings!r}"
        )
        if not settings:
            return self.method
        require(isinstance(self.method, str), "settings go with the name of a method; give only the method")
        return {"name": self.method, **settings}

    def _model(self, algorithm: Algorithm) -> Any:
        if not isinstance(self.model, str) or self.model != "auto":
            return self.model
        linear = "mlr" if self._task == "classification" else "linear"
        return "mlp" if isinstance(algorithm, Parted) else linear  # a linear model has no body to share

    def _parts(self) -> tuple[PyTree, PyTree]:
        """(parameters, static) of the module that was trained; of the parameters only the places matter."""
        module, outputs, seed = self._built
        if not isinstance(module, eqx.Module):
            module = build(module, (self.n_features_in_,), outputs, self._task, model_key(seed))
        return eqx.partition(module, eqx.is_inexact_array)


class Classifies(ClassifierMixin):
    """What classifiers of groups share: labels, and what follows from probabilities."""

    classes_: Shaped[np.ndarray, "classes"]

    def _codes(self, labels: Any) -> Int[np.ndarray, "n"]:
        """The number of each row's class; sets `classes_`. Raises `ConfigError` for a single class."""
        check_classification_targets(labels)
        self.classes_, codes = np.unique(column_or_1d(labels, warn=True), return_inverse=True)
        require(
            len(self.classes_) > 1,
            f"all labels are of one class, {self.classes_.tolist()[0]!r}; a classifier needs two or more",
        )
        return codes

    def predict(self, X: Any, groups: Any = None) -> Shaped[np.ndarray, "n"]:
        """The most probable class of each row, as `y` named it."""
        likely = np.argmax(self.predict_proba(X, groups), axis=1)  # first: it says whether `fit` was called
        return self.classes_[likely]

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """The accuracy."""
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))

    def predict_proba(self, X: Any, groups: Any = None) -> Float[np.ndarray, "n classes"]:
        """The probability of each of classes_, (n, classes)."""
        raise NotImplementedError


class Regresses(RegressorMixin):
    """What regressors of groups share."""

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """R2, the coefficient of determination."""
        return float(r2_score(y, self.predict(X, groups), sample_weight=sample_weight))

    def predict(self, X: Any, groups: Any = None) -> Float[np.ndarray, "n"]:
        """The prediction for each row, in the units of `y`."""
        raise NotImplementedError


class PersonalizedClassifier(Classifies, _Personalized):
    """A classifier with a model for each client: argmax_c model_i(x)_c, probabilities softmax(model_i(x)).

    fit(X, y, groups): `groups` names each row's client; without it all rows are one client's. X: (n, d); y: labels of
    any type; groups: (n,).

    Which model answers: rows of a client that `fit` has seen are answered by that client's own model (the method's
    first: `adapted`, `personal`, ...). Rows of other clients, and rows without groups, are answered by the shared
    model, `global`; a method that has none (`local`, `boosted-intercept`) then raises `ConfigError`. After a fit
    without groups there is one client, whose model answers everything.

    method: a name ("pfedme"), a specification, or a method such as `idiolect.PFedMe(...)`. settings: of a method
    given by name, {"rate": 0.05}. model: "auto" (`mlr` or `linear`; `mlp` for a method with body and head), a name or
    specification of the zoo, or an Equinox module for (d,) features; trees use none. cohort: clients per round, all
    by default. standardise: features to mean 0 and deviation 1, fitted on the rows of `fit`; without it features of
    large scale diverge. random_state: a seed 0 to 2^31 - 1 is that of `idiolect.run`.

    rounds: a number, or "auto": until the validation loss stops falling, at most 200. validation_fraction: of each
    client's rows, rounded, that are then held out for validation, drawn by random_state; a client with one or two
    rows gives none. Models are those of the round in which the method's first named model has the least validation
    loss; they are not trained again on all rows. If no row can be held out there are 100 rounds, and a
    `ConvergenceWarning`. With a number all rows are trained on. rate: learning rates that the method leaves at their
    defaults: "auto" by the curvature of the training loss, a number, or the "method"'s own. The default is "auto"
    where rounds is, else "method".

    personalize(X, y, groups) gives further clients their models, by the method's own rule (an own intercept, a
    fine-tuning), and returns a copy that knows them, too; rounds: of each, by default as many as of those of `fit`.

    After fit: classes_, clients_ (the groups, sorted), models_ (a mapping from client to Equinox module), scaler_;
    n_iter_, the round of the models; settings_, those of the method that followed from the data.

    Raises `ConfigError` (a `ValueError`) for settings and shapes, `DivergedError` at the first NaN or infinity. The
    interface is that of https://scikit-learn.org/stable/developers/develop.html.
    """

    _task: TaskKind = "classification"

    def fit(self, X: Any, y: Any, groups: Any = None) -> "PersonalizedClassifier":
        """Train every client's model; see the class."""
        x, labels = cast(tuple[Any, Any], validate_data(self, X, y, dtype=np.float64))
        codes = self._codes(labels)
        self._fit(x, codes.astype(np.int32), groups, len(self.classes_))
        return self

    def personalize(self, X: Any, y: Any, groups: Any, rounds: int | None = None) -> "PersonalizedClassifier":
        """A copy of this estimator that knows further clients; see the class."""
        check_is_fitted(self)
        x, labels = cast(tuple[Any, Any], validate_data(self, X, y, dtype=np.float64, reset=False))
        labels = column_or_1d(labels, warn=True)
        codes = rows_of(labels, self.classes_)
        if (codes < 0).any():
            raise ConfigError(f"label {labels[codes < 0].tolist()[0]!r} is none that fit has seen; see classes_")
        return self._joined(x, codes.astype(np.int32), groups, rounds)

    def predict_proba(self, X: Any, groups: Any = None) -> Float[np.ndarray, "n classes"]:
        """The probability of each of classes_, (n, classes)."""
        return softmax(self._answers(X, groups), axis=1)


class PersonalizedRegressor(Regresses, _Personalized):
    """A regressor with a model for each client: scale * model_i(x) + mean.

    Labels are scaled by the mean and the deviation of all rows of `fit`, and predictions are in the units of `y`. All
    else as `PersonalizedClassifier`; after fit: clients_, models_ (whose outputs are in scaled units), mean_, scale_,
    scaler_, n_iter_, settings_.
    """

    _task: TaskKind = "regression"

    def fit(self, X: Any, y: Any, groups: Any = None) -> "PersonalizedRegressor":
        """Train every client's model; see the class."""
        x, given = cast(tuple[Any, Any], validate_data(self, X, y, dtype=np.float64, y_numeric=True))
        targets = np.asarray(column_or_1d(given, warn=True), np.float64)
        self.mean_, spread = float(targets.mean()), float(targets.std())
        self.scale_ = spread if spread > 1e-9 * abs(self.mean_) else 1.0  # the deviation of equal labels is rounding
        self._fit(x, self._scaled(targets), groups, 0)
        return self

    def personalize(self, X: Any, y: Any, groups: Any, rounds: int | None = None) -> "PersonalizedRegressor":
        """A copy of this estimator that knows further clients; see the class."""
        check_is_fitted(self)
        x, given = cast(tuple[Any, Any], validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False))
        return self._joined(x, self._scaled(np.asarray(column_or_1d(given, warn=True), np.float64)), groups, rounds)

    def _scaled(self, targets: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        return ((targets - self.mean_) / self.scale_).astype(np.float32)

    def predict(self, X: Any, groups: Any = None) -> Float[np.ndarray, "n"]:
        """The prediction for each row, in the units of `y`."""
        return self._answers(X, groups).reshape(-1) * self.scale_ + self.mean_


def _rows_in(models: PyTree) -> int:
    """The number of stacked models."""
    return len(jax.tree.leaves(models)[0])
