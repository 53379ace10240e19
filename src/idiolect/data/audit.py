"""Leakage audit: test samples in training data, normalisation fitted on test data, columns that give the label."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped, UInt64

from idiolect.data.federated import SPLITS, FederatedData, GeneratedSplit, Split
from idiolect.data.files.table import column_of
from idiolect.data.schema.columns import Category, LeftOut
from idiolect.data.schema.label import Classes
from idiolect.data.schema.schema import Schema
from idiolect.data.schema.values import words_of

FEWEST = 20
"""Rows below which nothing is reported: a column can separate a few rows by chance."""


def telling_columns(
    schema: Schema, x: Sequence[Float[np.ndarray, "_ features"]], y: Shaped[np.ndarray, "n"]
) -> tuple[str, ...]:
    """The columns that give the label of every row by themselves: perhaps the label under another name.

    x, y: encoded rows; the features in parts, of which one column at a time is put together. Of a classification:
    equal values always have the same class, and along the sorted values the class changes less than twice as often as
    there are classes (categories: there are at most twice as many). A mark of missing values is such a column, too.
    Of a regression: the label rises, or falls, with the column in every row.
    """
    if len(y) < FEWEST:
        return ()
    is_class, found, place = isinstance(schema.label, Classes), list[str](), 0
    for column in schema.columns:
        width = len(column.features)
        here, place = slice(place, place + width), place + width
        if isinstance(column, LeftOut):
            continue
        part = np.concatenate([rows[:, here] for rows in x])
        if isinstance(column, Category):
            values = np.where(part.any(axis=1), part.argmax(axis=1), -1)
            tells = is_class and _by_category(values, y)
        else:
            tells = any(_by_order(each, y) for each in part.T) if is_class else _in_step(part[:, 0], y)
        if tells:
            found.append(column.name)
    return tuple(found)


def repeated_columns(table: pd.DataFrame, names: list[str]) -> list[tuple[str, str]]:
    """Pairs (column, an earlier one that has the same value in every row), constant ones left out."""
    seen: dict[bytes, str] = {}
    pairs: list[tuple[str, str]] = []
    for name in names:
        words = words_of(column_of(table, name))
        if len(words.distinct) < 2:
            continue
        key = "\0".join(words.distinct).encode(errors="surrogatepass") + words.code.tobytes()
        if key in seen:
            pairs.append((name, seen[key]))
        seen.setdefault(key, name)
    return pairs


def _by_category(values: Int[np.ndarray, "n"], y: Shaped[np.ndarray, "n"]) -> bool:
    pairs = np.unique(np.stack([values, y.astype(np.int64)]), axis=1)
    categories, classes = len(np.unique(values)), len(np.unique(y))
    return pairs.shape[1] == categories and classes > 1 and categories <= 2 * classes


def _by_order(values: Float[np.ndarray, "n"], y: Shaped[np.ndarray, "n"]) -> bool:
    classes = len(np.unique(y))
    order = np.lexsort((y, values))
    changes, ties = np.diff(y[order]) != 0, np.diff(values[order]) == 0
    return classes > 1 and not bool((changes & ties).any()) and int(changes.sum()) < 2 * classes


def _in_step(values: Float[np.ndarray, "n"], y: Shaped[np.ndarray, "n"]) -> bool:
    order = np.argsort(values, kind="stable")
    steps, rises = np.diff(values[order]) > 0, np.diff(y[order])
    if steps.sum() < FEWEST / 2 or bool((rises[~steps] != 0).any()):
        return False
    return bool((rises[steps] > 0).all() or (rises[steps] < 0).all())


@dataclass(frozen=True)
class Audit:
    """The findings of an audit; counts are samples. A copy has equal features and an equal label, bit for bit.

    Where each client numbers its own classes, only features are compared.

    shared: distinct samples that more than one client holds, in any split;
    repeated: samples beyond the first copy within one client and split;
    *_in_own_train: samples with a copy in the training data of the same client;
    *_in_other_train: samples with a copy in the training data of another client;
    normalisation, fitted_on: its name and what it was fitted on ('train', 'all', 'nothing', 'unknown');
    leaks: known leaks by design. telling: columns of a table that give every row's label by themselves.
    """

    samples: int
    distinct: int
    shared: int
    repeated: int
    test: int
    test_in_own_train: int
    test_in_other_train: int
    test_in_validation: int
    validation: int
    validation_in_own_train: int
    validation_in_other_train: int
    clients_with_leaked_tests: int
    normalisation: str
    fitted_on: str
    leaks: tuple[str, ...]
    telling: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether no test or validation sample has a copy in training data and nothing was fitted on test data."""
        copies = (
            self.test_in_own_train
            + self.test_in_other_train
            + self.test_in_validation
            + self.validation_in_own_train
            + self.validation_in_other_train
        )
        return copies == 0 and self.fitted_on != "all" and not self.leaks and not self.telling

    def lines(self) -> list[str]:
        """The findings as plain sentences; a single one if there is no leak."""
        if self.clean:
            fitted = _FITTED.get(self.fitted_on, self.fitted_on)
            return [
                f"No leak found: none of {self.test:,} test and {self.validation:,} validation samples has an exact "
                f"copy in training data; normalisation '{self.normalisation}': {fitted}."
            ]
        sentences = [
            f"{self.samples:,} samples, {self.distinct:,} of them distinct; {self.shared:,} distinct samples are "
            f"held by more than one client; {self.repeated:,} repeat another sample of their client and split.",
            _share(self.test_in_own_train, self.test, "test", "in the training data of the same client"),
            _share(self.test_in_other_train, self.test, "test", "in the training data of another client")[:-1]
            + f" ({self.clients_with_leaked_tests} clients have test samples with a copy in training data).",
        ]
        if self.validation:
            in_same_client = "in the training data of the same client"
            in_other_client = "in the training data of another client"
            sentences += [
                _share(self.test_in_validation, self.test, "test", "in a client's validation data"),
                _share(self.validation_in_own_train, self.validation, "validation", in_same_client),
                _share(self.validation_in_other_train, self.validation, "validation", in_other_client),
            ]
        sentences.append(f"Normalisation '{self.normalisation}': {_FITTED.get(self.fitted_on, self.fitted_on)}.")
        sentences += [f"Known leak: {leak}." for leak in self.leaks]
        sentences += [
            f"Column '{name}' gives the label of every row by itself: is it the label under another name? "
            f"--set 'data.ignore=[\"{name}\"]' leaves it out."
            for name in self.telling
        ]
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain values."""
        return {**asdict(self), "leaks": list(self.leaks), "telling": list(self.telling), "clean": self.clean}


_FITTED = {
    "train": "fitted on training samples only",
    "all": "FITTED ON TEST SAMPLES TOO, so test data shape the features",
    "nothing": "fitted on no data",
    "unknown": "done before the data came here, so whether it was fitted on test data is unknown",
}


def _share(count: int, total: int, what: str, where: str) -> str:
    return f"{count:,} of {total:,} {what} samples ({count / max(total, 1):.1%}) have an exact copy {where}."


def audit(data: FederatedData) -> Audit:
    """Look for leaks between the splits and clients of the data."""
    # Where clients number their own classes, equal images may have different labels at two clients.
    digests = [_digests(data.stored(name), labelled=not data.own_labels) for name in SPLITS]
    distinct, codes = np.unique(np.concatenate(digests), return_inverse=True)
    ends = np.cumsum([len(part) for part in digests])
    code: dict[str, Int[np.ndarray, "n"]] = dict(zip(SPLITS, np.split(codes.reshape(-1), ends[:-1]), strict=True))
    owner: dict[str, Int[np.ndarray, "n"]] = {name: data.split(name).owners for name in SPLITS}

    def pairs(name: str) -> Int[np.ndarray, "n"]:
        """A number for each row that identifies its (sample, client)."""
        return code[name] * data.num_clients + owner[name]

    holdings = np.unique(np.concatenate([pairs(name) for name in SPLITS]))
    trained = np.unique(pairs("train"))
    trainers = np.bincount(trained // data.num_clients, minlength=len(distinct))

    def copies(name: str) -> tuple[Bool[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
        """(rows with a copy in their own client's training data, rows with a copy in another client's)."""
        in_own_client = np.isin(pairs(name), trained)
        return in_own_client, trainers[code[name]] - in_own_client > 0

    test_in_own, test_in_other = copies("test")
    validation_in_own, validation_in_other = copies("validation")
    normalisation = data.provenance.get("normalisation", {})
    return Audit(
        samples=len(codes.reshape(-1)),
        distinct=len(distinct),
        shared=int((np.bincount(holdings // data.num_clients) > 1).sum()),
        repeated=sum(len(code[name]) - len(np.unique(pairs(name))) for name in SPLITS),
        test=len(test_in_own),
        test_in_own_train=int(test_in_own.sum()),
        test_in_other_train=int(test_in_other.sum()),
        test_in_validation=int(np.isin(code["test"], code["validation"]).sum()),
        validation=len(validation_in_own),
        validation_in_own_train=int(validation_in_own.sum()),
        validation_in_other_train=int(validation_in_other.sum()),
        clients_with_leaked_tests=len(np.unique(owner["test"][test_in_own | test_in_other])),
        normalisation=str(normalisation.get("name", "unknown")),
        fitted_on=str(normalisation.get("fitted_on", "unknown")),
        leaks=tuple(data.provenance.get("leaks", ())),
        telling=_telling(data),
    )


def _telling(data: FederatedData) -> tuple[str, ...]:
    """See `telling_columns`; only a table has columns."""
    if data.schema is None or data.own_labels:
        return ()
    splits = [data.stored(name) for name in SPLITS]
    return telling_columns(data.schema, [split.x for split in splits], np.concatenate([split.y for split in splits]))


def audit_lines(data: FederatedData) -> list[str]:
    """The audit's findings as sentences; generated samples are not audited.

    Those of data from a folder are the findings when it was written.
    """
    known = data.provenance.get("audit")
    if isinstance(known, Mapping) and known["of"] == data.fingerprint:
        return [*known["lines"]]
    if isinstance(data.train, GeneratedSplit):
        return ["Not audited: samples are generated when they are used, each split by independent draws."]
    return audit(data).lines()


def _digests(split: Split, *, labelled: bool) -> UInt64[np.ndarray, "n"]:
    """A 64-bit hash of each row's features (and label); two of a million rows collide with chance 3e-8."""
    x, y = np.ascontiguousarray(split.x), np.ascontiguousarray(split.y)
    if len(y) == 0:
        return np.empty(0, dtype=np.uint64)
    features = x.reshape(len(x), -1).view(np.uint8)
    labels = y.reshape(-1, 1).view(np.uint8)
    hashes = np.empty(len(y), dtype=np.uint64)
    for row in range(len(y)):
        digest = hashlib.blake2b(features[row].data, digest_size=8)
        if labelled:
            digest.update(labels[row].data)
        hashes[row] = int.from_bytes(digest.digest(), "little")
    return hashes
