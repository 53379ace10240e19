"""Baselines next to the methods: guessing, and scikit-learn's ridge and logistic regression, by client and pooled.

They see only the training rows of a division, as the methods do, and choose their penalty by cross-validation on
them: nothing federated, no rounds, one line of code for whoever has the rows. scikit-learn is the
extra `idiolect[sklearn]`.
"""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from idiolect.core.errors import ConfigError
from idiolect.data.federated import FederatedData
from idiolect.study.advice.draws import Draws
from idiolect.study.advice.scored import Candidate, candidate

PENALTIES = np.geomspace(1e-3, 1e4, 15)
_FOLDS = 3
_PARTS = ("validation", "test")


def baselines(draws: Draws) -> list[Candidate]:
    """The baselines on every division.

    guess: each client's own mean, or its shares of the labels with one added to each count; pooled guess: the same
    over all clients. own ridge or logistic; pooled ridge or logistic: regression with a penalty among 15, which
    generalised cross-validation or three folds choose.

    Raises `ConfigError` without scikit-learn.
    """
    check_installed()
    kind = "ridge" if draws.first.task == "regression" else "logistic"
    fits = {"guess": _guess, kind: _ridge if kind == "ridge" else _logistic}
    labels = [tuple(data.stored(part).y for part in _PARTS) for data in draws.data]
    found: list[Candidate] = []
    for name, fit in fits.items():
        for whose in ("own", "pooled"):
            outputs = [_outputs(data, fit, whose == "own") for data in draws.data]
            found.append(candidate(f"{whose} {name}", "baseline", outputs, labels))  # pyright: ignore[reportArgumentType]
    return found


def regressions(draws: Draws) -> list[Candidate]:
    return baselines(draws)


def trees(draws: Draws) -> list[Candidate]:
    return []


def check_installed() -> None:
    """Raise `ConfigError` if scikit-learn is not installed."""
    try:
        import sklearn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ConfigError("advice needs scikit-learn: pip install 'idiolect[sklearn]'") from error


def _outputs(
    data: FederatedData, fit: Any, own: bool
) -> tuple[Float[np.ndarray, "_ ..."], Float[np.ndarray, "_ ..."]]:
    """The outputs for (validation, test) rows, of a fit on each client's training rows or on all."""
    classes = data.num_outputs if data.task == "classification" else 0
    train, parts = data.stored("train"), [data.stored(part) for part in _PARTS]
    outputs = [np.zeros((part.count, classes) if classes else part.count) for part in parts]
    flat = [part.x.reshape(part.count, -1).astype(np.float64) for part in parts]
    if not own:
        fitted = fit(train.x.reshape(train.count, -1).astype(np.float64), train.y, classes)
        return tuple(fitted(x) for x in flat)  # pyright: ignore[reportReturnType]
    for client in range(data.num_clients):
        x, y = train.client(client)
        fitted = fit(x.reshape(len(y), -1).astype(np.float64), y, classes)
        for part, rows, output in zip(parts, flat, outputs, strict=True):
            mine = slice(int(part.offsets[client]), int(part.offsets[client + 1]))
            if mine.stop > mine.start:
                output[mine] = fitted(rows[mine])
    return outputs[0], outputs[1]


def _guess(_: Float[np.ndarray, "n d"], y: np.ndarray, classes: int) -> Any:
    if not classes:
        return lambda rows: np.full(len(rows), float(y.mean()))
    shares = np.log((np.bincount(y, minlength=classes) + 1) / (len(y) + classes))
    return lambda rows: np.tile(shares, (len(rows), 1))


def _ridge(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n"], _: int) -> Any:
    if len(y) < 3:
        return _guess(x, y, 0)
    from sklearn.linear_model import RidgeCV

    return RidgeCV(PENALTIES).fit(x, y.astype(np.float64)).predict


def _logistic(x: Float[np.ndarray, "n d"], y: Int[np.ndarray, "n"], classes: int) -> Any:
    """Logits of logistic regression; its probabilities are mixed with the guess, as if that were one row more.

    Where a client's rows lack a class, its probability would be 0 and one test row of it an infinite loss.
    """
    guess = _guess(x, y, classes)
    held, counts = np.unique(y, return_counts=True)
    if len(held) < 2:
        return guess
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    model = LogisticRegression(max_iter=300)
    folds = min(_FOLDS, int(counts.min()))
    if folds >= 2:
        search = StratifiedKFold(folds, shuffle=True, random_state=0)
        model = GridSearchCV(model, {"C": 1 / PENALTIES[::2]}, scoring="neg_log_loss", cv=search)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a weak penalty on separable rows does not converge, and is not chosen
        fitted = model.fit(x, y)

    def logits(rows: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m classes"]:
        shares = np.zeros((len(rows), classes))
        shares[:, held] = fitted.predict_proba(rows)
        return np.log((len(y) * shares + np.exp(guess(rows))) / (len(y) + 1))

    return logits
