"""scikit-learn estimators that train several methods: every client mixes their models, or chooses one of them."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from idiolect.algorithms.base import Algorithm
from idiolect.api.arguments import Method
from idiolect.api.estimators import (
    Classifies,
    PersonalizedClassifier,
    PersonalizedRegressor,
    Regresses,
    asked_rows,
    clients_of,
    column_of,
    names_of,
    rows_of,
    seed_in,
    share_of,
)
from idiolect.api.fitted import divided_by
from idiolect.core.errors import ConfigError, require
from idiolect.study.advice.blend import loss_of
from idiolect.study.combine.combined import Kind, check_kind
from idiolect.study.combine.weights import weights_of
from idiolect.study.run.automatic import default_methods

Single = PersonalizedClassifier | PersonalizedRegressor


class _Combined(BaseEstimator):
    """What both estimators share: one estimator per method, and each client's weights of them."""

    _single: type[Single]

    def __init__(
        self,
        methods: Sequence[Method] | Literal["auto"] | Any = "auto",
        model: Any = "auto",
        *,
        kind: Kind | Any = "blend",  # scikit-learn wants any value taken here, and checked in fit
        rate: float | Literal["auto", "method"] | Any = None,
        validation_fraction: float | Any = 0.2,
        cohort: float | Any = None,
        standardise: bool | Any = True,
        random_state: Any = None,
    ) -> None:
        self.methods, self.model, self.kind, self.rate = methods, model, kind, rate
        self.validation_fraction, self.cohort = validation_fraction, cohort
        self.standardise, self.random_state = standardise, random_state

    def _fit(self, x: Float[np.ndarray, "n d"], y: Any, groups: Any, labels: Shaped[np.ndarray, "n"]) -> None:
        """Train every method, and weigh them. y: as given; labels: numbers of classes, or y itself."""
        kind, methods = check_kind(self.kind), self._methods()
        share, seed = share_of(self.validation_fraction), seed_in(self.random_state)
        self._grouped = groups is not None
        names = names_of(groups, len(x))
        self.clients_ = clients_of(names)
        rows, count = rows_of(names, self.clients_), len(self.clients_)
        held = np.concatenate([part for _, part in divided_by(rows, count, share, seed)])
        options = {
            "rate": self.rate,
            "validation_fraction": share,
            "cohort": self.cohort,
            "standardise": self.standardise,
        }
        self.estimators_: dict[str, Single] = {}
        losses: list[Float[np.ndarray, "n"]] = []
        for name, method in methods.items():
            one = self._single(method, self.model, random_state=seed, **options).fit(x, y, groups)
            self.estimators_[name] = one
            losses.append(loss_of(_predicted(one, x[held], names[held] if self._grouped else None), labels[held]))
        titles, classes = list(methods), self._single is PersonalizedClassifier

        def weigh(chosen: list[str]) -> tuple[Float[np.ndarray, "clients methods"], Float[np.ndarray, "methods"]]:
            if len(held) == 0 or len(chosen) < 2:
                equal = np.full(len(chosen), 1 / max(len(chosen), 1))
                return np.tile(equal, (count, 1)), equal
            of_chosen = np.stack([losses[titles.index(name)] for name in chosen])
            return weights_of(kind, of_chosen, rows[held], count, classes)

        own, others = weigh(titles)
        self.weights_ = pd.DataFrame(own, index=pd.Index(self.clients_), columns=titles)
        shared = [name for name, one in self.estimators_.items() if one.has_shared_]
        self._of_new = others
        self._of_strangers = pd.Series(weigh(shared)[1], index=shared).reindex(titles, fill_value=0.0).to_numpy()

    def _joined(self, x: Float[np.ndarray, "n d"], y: Any, groups: Any, rounds: Any) -> Any:
        """`personalize`: every method gives the clients their models; their weights are the federation's."""
        joined = copy.copy(self)
        joined.estimators_ = {name: one.personalize(x, y, groups, rounds) for name, one in self.estimators_.items()}
        new = clients_of(column_of(groups, len(x)))
        joined.clients_ = np.concatenate([self.clients_, new])
        theirs = pd.DataFrame(np.tile(self._of_new, (len(new), 1)), pd.Index(new), self.weights_.columns)
        joined.weights_ = pd.concat([self.weights_, theirs])
        return joined

    def _mixed(self, X: Any, groups: Any) -> Float[np.ndarray, "n ..."]:
        """sum_m w[i, m] p_m(x) for the rows of client i."""
        check_is_fitted(self)
        x = cast(np.ndarray, validate_data(self, X, dtype=np.float64, reset=False))
        names = None if groups is None or not self._grouped else column_of(groups, len(x))
        share = self._shares(names, len(x))
        total: np.ndarray | None = None
        for column, one in enumerate(self.estimators_.values()):
            used = np.flatnonzero(share[:, column] > 0)
            if len(used):
                answers = _predicted(one, x[used], None if names is None else names[used])
                total = np.zeros((len(x), *answers.shape[1:])) if total is None else total
                total[used] += share[used, column].reshape(-1, *(1,) * (answers.ndim - 1)) * answers
        return cast(np.ndarray, total)

    def _shares(self, names: Shaped[np.ndarray, "n"] | None, count: int) -> Float[np.ndarray, "n methods"]:
        """The weights of each row."""
        if not self._grouped:
            return np.repeat(self.weights_.to_numpy(), count, axis=0)
        rows, stranger = asked_rows(names, count, self.clients_)
        if stranger and not self._of_strangers.any():
            raise ConfigError(
                f"no method of {', '.join(self.estimators_)} has a shared model that could predict {stranger}; give "
                "groups= of known clients, personalize, or add a method such as 'fedavg'"
            )
        return np.where(rows[:, None] < 0, self._of_strangers, self.weights_.to_numpy()[np.maximum(rows, 0)])

    def _methods(self) -> dict[str, Method]:
        """The methods by name. Raises `ConfigError` for less than two, or a name that is there twice."""
        given: Any = default_methods() if isinstance(self.methods, str) and self.methods == "auto" else self.methods
        if isinstance(given, str | Mapping | Algorithm) or not isinstance(given, Sequence):
            raise ConfigError(f"methods = {given!r} must be 'auto' or a list of methods, as ['local', 'fedavg-ft']")
        found: dict[str, Method] = {}
        for one in given:
            name = one.name if isinstance(one, Algorithm) else one.get("name") if isinstance(one, Mapping) else one
            require(str(name) not in found, f"methods: {name!r} is there twice")
            found[str(name)] = one
        require(len(found) >= 2, f"methods = {given!r}: a combination needs two methods or more")
        return found


class CombinedClassifier(Classifies, _Combined):
    """A classifier that trains several methods; each client mixes their probabilities, sum_m w_im p_m(x).

    methods: names, specifications or methods; "auto": those of `idiolect compare` on a table. kind: "blend", weights
    of a mixture that explains the client's validation rows, drawn to the federation's; "portfolio": one method for
    each client, see `idiolect.combine`. Only validation rows decide: `validation_fraction` of each client's rows,
    which no method trains on and by which each method's round is chosen, too. model, rate, cohort, standardise and
    random_state are those of `PersonalizedClassifier`, which each method is trained by, with rounds = "auto".

    fit(X, y, groups), predict, predict_proba, score and personalize are those of `PersonalizedClassifier`. Rows of
    clients that `fit` has not seen are predicted by the methods with a shared model, weighed for the federation.
    Clients that personalize adds have the federation's weights of all methods.

    After fit: classes_, clients_, estimators_ (a `PersonalizedClassifier` for each method), weights_ (a table: a row
    for each client, a column for each method). Raises as `PersonalizedClassifier`, and `ConfigError` for `methods`.
    """

    _single = PersonalizedClassifier

    def fit(self, X: Any, y: Any, groups: Any = None) -> "CombinedClassifier":
        """Train every method and weigh them; see the class."""
        x, labels = cast(tuple[Any, Any], validate_data(self, X, y, dtype=np.float64))
        self._fit(x, labels, groups, self._codes(labels))
        return self

    def personalize(self, X: Any, y: Any, groups: Any, rounds: int | None = None) -> "CombinedClassifier":
        """A copy of this estimator that knows further clients; see the class."""
        check_is_fitted(self)
        x, labels = cast(tuple[Any, Any], validate_data(self, X, y, dtype=np.float64, reset=False))
        return self._joined(x, labels, groups, rounds)

    def predict_proba(self, X: Any, groups: Any = None) -> Float[np.ndarray, "n classes"]:
        """The probability of each of classes_, (n, classes)."""
        return self._mixed(X, groups)


class CombinedRegressor(Regresses, _Combined):
    """A regressor that trains several methods; each client mixes their predictions, sum_m w_im f_m(x).

    All else as `CombinedClassifier`, with a `PersonalizedRegressor` for each method.
    """

    _single = PersonalizedRegressor

    def fit(self, X: Any, y: Any, groups: Any = None) -> "CombinedRegressor":
        """Train every method and weigh them; see the class."""
        x, given = cast(tuple[Any, Any], validate_data(self, X, y, dtype=np.float64, y_numeric=True))
        labels = np.asarray(column_or_1d(given, warn=True), np.float64)
        self._fit(x, labels, groups, labels)
        return self

    def personalize(self, X: Any, y: Any, groups: Any, rounds: int | None = None) -> "CombinedRegressor":
        """A copy of this estimator that knows further clients; see the class."""
        check_is_fitted(self)
        x, given = cast(tuple[Any, Any], validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False))
        return self._joined(x, given, groups, rounds)

    def predict(self, X: Any, groups: Any = None) -> Float[np.ndarray, "n"]:
        """The prediction for each row, in the units of `y`."""
        return self._mixed(X, groups)


def _predicted(one: Single, x: Float[np.ndarray, "n d"], groups: Any) -> Float[np.ndarray, "n ..."]:
    """Probabilities, (n, classes), or numbers, (n,)."""
    if len(x) == 0:
        return np.zeros((0, len(one.classes_))) if isinstance(one, PersonalizedClassifier) else np.zeros(0)
    return one.predict_proba(x, groups) if isinstance(one, PersonalizedClassifier) else one.predict(x, groups)
