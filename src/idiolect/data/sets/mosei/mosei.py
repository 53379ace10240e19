"""CMU-MOSEI: sentiment and emotions in some 3,300 videos, 23,000 utterances by text, audio and video.

(A. Zadeh et al., "Multimodal Language Analysis in the Wild: CMU-MOSEI Dataset and Interpretable Dynamic Fusion
Graph", ACL 2018.)
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
from jaxtyping import Bool, Shaped

from idiolect.core.errors import DataError, unknown
from idiolect.data.divide.missing import Missing, MissingPattern
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.files.folder import data_folder
from idiolect.data.modalities import Modalities
from idiolect.data.sets.mosei.files import KEYS, PUBLISHED, Features, read_features
from idiolect.data.sets.mosei.labels import EMOTIONS, FILE, GRADES, matched, read_labels
from idiolect.data.sets.mosei.utterances import Options, Utterances, from_utterances

COMPLETE = 22_800  # both published files have a few more
LABELS = ("two", "three", "seven", "emotion", "value")
TIMES = ("mean", "series")


def mosei(
    folder: str | Path | None = None,
    modalities: str | Sequence[str] = tuple(KEYS),
    *,
    labels: str = "two",
    times: str = "mean",
    clients: int | None = None,
    split: str = "within",
    new: bool = False,
    normalisation: str = "zscore-train",
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    **absence: Unpack[Missing],
) -> FederatedData:
    """Sentiment and emotions in videos (CMU-MOSEI): a video is a client, utterances by text, audio and video.

    folder: contains `mosei/` with mosei_senti_data.pkl or aligned_50.pkl, raw or .gz (the pickles cannot run code);
        by default the environment variable IDIOLECT_DATA.
    modalities: any of text, audio and video (called vision in the files).
    labels: 'two' (negative or not), 'three' (negative, neutral, positive), 'value' (sentiment from -3 to 3, a
        regression); with CMU_MOSEI_Labels.csv beside the features also 'seven' (grades of sentiment) and 'emotion'
        (the strongest of six), which leave out utterances without a row there.
    times: each modality's features as their 'mean' over an utterance, or the 'series' of shape (50, features), which
        needs some 10 GB of memory for the complete data set.
    clients, split, new, minimum: see `Options`. normalisation: see `har`. All other settings: see `Missing`.

    A modality whose features are all zero in an utterance is absent; utterances without any modality are left out. A
    time of a series that is all zeros is padding: normalisation ignores it, it stays zero, and the encoder `text`
    skips it.
    """
    pattern = MissingPattern(**absence)
    how = Options(modalities, clients, split, new, normalisation, minimum, test, validation, split_seed)
    for name, value, allowed in (("labels", labels, LABELS), ("times", times, TIMES)):
        if value not in allowed:
            raise unknown(name, value, allowed)
    pool = read_mosei(folder, labels=labels, times=times).of(how.modalities)
    has_any = _present(pool)
    if not has_any.all():
        note = f"{(~has_any).sum():,} utterances have none of the modalities and are left out"
        pool = _only(replace(pool, notes=(*pool.notes, note)), has_any)
    arguments = {"labels": labels, "times": times}
    return from_utterances(pool, how, pattern, source="mosei", arguments=arguments, zeros_are_absent=True)


def read_mosei(folder: str | Path | None = None, *, labels: str = "two", times: str = "mean") -> Utterances:
    """All utterances with the labels asked for, in the order of the published parts."""
    where = data_folder(folder, "mosei", PUBLISHED)
    features = read_features(where, series=times == "series")
    shapes = tuple(values.shape[1:] for values in features.values.values())
    pool = Utterances(
        x=np.concatenate(list(features.values.values()), axis=-1),
        y=features.sentiment,
        layout=Modalities(tuple(features.values), shapes),
        video=np.array([name.video for name in features.names]),
        part=features.part,
        notes=tuple(_notes(features)),
    )
    if labels == "value":
        return pool
    if labels == "two":
        return replace(pool, y=(features.sentiment >= 0).astype(np.int32), classes=("negative", "not negative"))
    if labels == "three":
        signs = np.sign(features.sentiment).astype(np.int32) + 1
        return replace(pool, y=signs, classes=("negative", "neutral", "positive"))
    return _of_label_file(pool, features, where, labels)


def _of_label_file(pool: Utterances, features: Features, where: Path, labels: str) -> Utterances:
    """The utterances that are in the label file, with its labels."""
    table = read_labels(where)
    rows = matched(table, features.names, features.sentiment, features.where)
    if not (rows >= 0).any():
        raise DataError(f"{features.where}: none of its utterances is in {where / FILE}; they do not belong together")
    column, classes, lowest = ("label6", EMOTIONS, 0) if labels == "emotion" else ("label7", GRADES, -3)
    y = (table[column].to_numpy()[rows] - lowest).astype(np.int32)
    notes = pool.notes
    if labels == "emotion":
        notes = (*notes, f"the emotion is the strongest of six; {FILE} says happy where no emotion was annotated")
    if missing := int((rows < 0).sum()):
        notes = (*notes, f"{missing:,} utterances are not in {FILE} and are left out")
    return _only(replace(pool, y=y, classes=classes, notes=notes), rows >= 0)


def _only(pool: Utterances, kept: Bool[np.ndarray, "n"]) -> Utterances:
    def cut(values: Shaped[np.ndarray, "n ..."]) -> Shaped[np.ndarray, "m ..."]:
        return values if kept.all() else values[kept]

    return replace(pool, x=cut(pool.x), y=cut(pool.y), video=cut(pool.video), part=cut(pool.part))


def _present(pool: Utterances) -> Bool[np.ndarray, "n"]:
    """Whether each utterance has any value that is not zero."""
    return (pool.x != 0).any(axis=tuple(range(1, pool.x.ndim)))


def _notes(features: Features) -> list[str]:
    count = len(features.names)
    notes = [] if count >= COMPLETE else [f"{INCOMPLETE}{count:,} utterances of more than {COMPLETE:,}"]
    if features.unvoiced:
        notes.append(
            f"{features.unvoiced:,} audio features are minus infinity, which means no voice; they are set to 0"
        )
    for modality, values in features.values.items():
        if absent := int((values == 0).all(axis=tuple(range(1, values.ndim))).sum()):
            notes.append(f"{modality} is absent in {absent:,} utterances: its features are all zero")
    return notes
