"""CMU-MOSEI and CMU-MOSI: sentiment of utterances in videos, by text, audio and video.

CMU-MOSEI has sentiment and emotions of 23,000 utterances in some 3,300 videos (A. Zadeh et al., "Multimodal Language
Analysis in the Wild: CMU-MOSEI Dataset and Interpretable Dynamic Fusion Graph", ACL 2018). CMU-MOSI has 2,199
utterances in 93 videos, positive or negative (A. Zadeh et al., "MOSI: Multimodal Corpus of Sentiment Intensity",
2016; the utterance features are those of S. Poria et al., "Context-Dependent Sentiment Analysis in User-Generated
Videos", ACL 2017).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
from jaxtyping import Bool, Shaped

from idiolect.core.errors import DataError, unknown
from idiolect.core.plugins import named
from idiolect.data.divide.missing import Missing, MissingPattern
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.files.archive import AGAIN, data_folder
from idiolect.data.modalities import Modalities
from idiolect.data.sets.mosei.files import (
    EMOTIONS,
    GRADES,
    KEYS,
    LABELS_FILE,
    PUBLISHED,
    Features,
    matched,
    read_features,
    read_labels,
)
from idiolect.data.sets.mosei.utterances import Utterances, VideoOptions, from_utterances

MOSEI_COMPLETE = 22_800  # both published files have a few more
LABELS = ("two", "three", "seven", "emotion", "value")
TIMES = ("mean", "series")


@named("mosei")
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

    A modality whose features are all zero in an utterance is absent; utterances without any modality are left out. A
    time of a series that is all zeros is padding: normalisation ignores it, it stays zero, and the encoder `text`
    skips it.

    All other settings: see `Missing`.

    Args:
        folder: Contains `mosei/` with mosei_senti_data.pkl or aligned_50.pkl, raw or .gz (the pickles cannot run
            code); by default the environment variable IDIOLECT_DATA.
        modalities: Any of text, audio and video (called vision in the files).
        labels: 'two' (negative or not), 'three' (negative, neutral, positive), 'value' (sentiment from -3 to 3, a
            regression); with CMU_MOSEI_Labels.csv next to the features also 'seven' (grades of sentiment) and
            'emotion' (the strongest of six), which leave out utterances without a row there.
        times: Each modality's features as their 'mean' over an utterance, or the 'series' of shape (50, features),
            which needs some 10 GB of memory for the complete data set.
        clients: See `VideoOptions`.
        split: See `VideoOptions`.
        new: See `VideoOptions`.
        minimum: See `VideoOptions`.
        normalisation: See `har`.
    """
    pattern = MissingPattern(**absence)
    how = VideoOptions(modalities, clients, split, new, normalisation, minimum, test, validation, split_seed)
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
        raise DataError(
            f"{features.where}: none of its utterances is in {where / LABELS_FILE}; they do not belong together"
        )
    column, classes, lowest = ("label6", EMOTIONS, 0) if labels == "emotion" else ("label7", GRADES, -3)
    y = (table[column].to_numpy()[rows] - lowest).astype(np.int32)
    notes = pool.notes
    if labels == "emotion":
        notes = (
            *notes,
            f"the emotion is the strongest of six; {LABELS_FILE} says happy where no emotion was annotated",
        )
    if missing := int((rows < 0).sum()):
        notes = (*notes, f"{missing:,} utterances are not in {LABELS_FILE} and are left out")
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
    notes = [] if count >= MOSEI_COMPLETE else [f"{INCOMPLETE}{count:,} utterances of more than {MOSEI_COMPLETE:,}"]
    if features.unvoiced:
        notes.append(
            f"{features.unvoiced:,} audio features are minus infinity, which means no voice; they are set to 0"
        )
    for modality, values in features.values.items():
        if absent := int((values == 0).all(axis=tuple(range(1, values.ndim))).sum()):
            notes.append(f"{modality} is absent in {absent:,} utterances: its features are all zero")
    return notes


MOSI_FILE = "mosi_utterance_features.npz"
MOSI_PUBLISHED = (
    f"'{MOSI_FILE}' holds, for train and test, the arrays PART_text, PART_audio, PART_video, PART_label and "
    "PART_utterance (VIDEO_NUMBER), from the features published with "
    "https://github.com/declare-lab/contextual-utterance-level-multimodal-sentiment-analysis (data/)"
)
FEATURES = {"text": 100, "audio": 73, "video": 100}
CLASSES = ("negative", "positive")
MOSI_COMPLETE = 2_199


@named("mosi", task="classification")
def mosi(
    folder: str | Path | None = None,
    modalities: str | Sequence[str] = tuple(FEATURES),
    *,
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
    """Opinions in videos (CMU-MOSI): 93 videos, positive or negative utterances by text, audio and video features.

    All other settings: see `Missing`.

    Args:
        folder: Contains `mosi/` with the file of utterance features; by default the environment variable
            IDIOLECT_DATA.
        modalities: Any of text (100 features), audio (73) and video (100).
        clients: See `VideoOptions`.
        split: See `VideoOptions`; the published split has 62 videos for training and 31, of other speakers, for
            testing.
        new: See `VideoOptions`.
        minimum: See `VideoOptions`.
        normalisation: 'none', or 'zscore-train', each feature by its mean and deviation in training.
    """
    pattern = MissingPattern(**absence)
    how = VideoOptions(modalities, clients, split, new, normalisation, minimum, test, validation, split_seed)
    return from_utterances(read_mosi(folder), how, pattern, source="mosi")


def read_mosi(folder: str | Path | None = None) -> Utterances:
    """Read and check all utterances, the published training part before the test part."""
    path = data_folder(folder, "mosi", MOSI_PUBLISHED) / MOSI_FILE
    arrays = _mosi_arrays(path)
    x: list[Shaped[np.ndarray, "n features"]] = []
    labels: list[Shaped[np.ndarray, "n"]] = []
    videos: list[Shaped[np.ndarray, "n"]] = []
    for part in ("train", "test"):
        label, names = arrays[f"{part}_label"], arrays[f"{part}_utterance"]
        if label.ndim != 1 or not np.isin(label, (0, 1)).all():
            raise DataError(f"{path}: {part}_label must hold a 0 or 1 for each utterance; {AGAIN}")
        if names.shape != label.shape or names.dtype.kind != "U" or not all("_" in name for name in names):
            raise DataError(f"{path}: {part}_utterance must hold a name VIDEO_NUMBER for each utterance; {AGAIN}")
        for modality, width in FEATURES.items():
            _check_mosi(arrays[f"{part}_{modality}"], (len(label), width), f"{path}: {part}_{modality}")
        x.append(np.concatenate([arrays[f"{part}_{modality}"] for modality in FEATURES], axis=1))
        labels.append(label.astype(np.int32))
        videos.append(np.array([name.rsplit("_", 1)[0] for name in names]))
    both = sorted(set(videos[0]) & set(videos[1]))
    if both:
        raise DataError(f"{path}: video '{both[0]}' is in the training and in the test part; {AGAIN}")
    count = sum(map(len, labels))
    notes = [f"{INCOMPLETE}{count:,} utterances of {MOSI_COMPLETE:,}"] if count != MOSI_COMPLETE else []
    return Utterances(
        x=np.concatenate(x).astype(np.float32),
        y=np.concatenate(labels),
        layout=Modalities(tuple(FEATURES), tuple((width,) for width in FEATURES.values())),
        video=np.concatenate(videos),
        part=np.repeat(["train", "test"], [len(part) for part in labels]),
        classes=CLASSES,
        notes=tuple(notes),
    )


def _mosi_arrays(path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The needed arrays of the file; pickled ones are refused."""
    if not path.is_file():
        raise DataError(f"missing file {path}; {MOSI_PUBLISHED}")
    wanted = [f"{part}_{key}" for part in ("train", "test") for key in (*FEATURES, "label", "utterance")]
    try:
        with np.load(path, allow_pickle=False) as file:
            for key in wanted:
                if key not in file:
                    raise DataError(f"{path} has no array '{key}'; {MOSI_PUBLISHED}")
            return {key: file[key] for key in wanted}
    except DataError:
        raise
    except Exception as error:  # whatever zipfile and numpy meet in a damaged file
        raise DataError(f"{path} is truncated, damaged or not an .npz of plain arrays ({error}); {AGAIN}") from error


def _check_mosi(values: Shaped[np.ndarray, "..."], shape: tuple[int, int], where: str) -> None:
    if values.dtype.kind != "f" or values.shape != shape:
        raise DataError(
            f"{where} must hold numbers of the shape {shape}, it is {values.dtype} {values.shape}; {AGAIN}"
        )
    if len(bad := np.flatnonzero(~np.isfinite(values).all(axis=1))):
        raise DataError(f"{where} has NaN or infinity in row {bad[0] + 1} ({len(bad)} in all); {AGAIN}")
