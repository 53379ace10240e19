"""Read and check the aligned features of CMU-MOSEI, which two groups publish, and its file of labels.

Both files of features are pickled dictionaries, train / valid / test -> text, audio, vision, each (n, times,
features), and the utterances' names. mosei_senti_data.pkl (Y.-H. H. Tsai et al., "Multimodal Transformer for
Unaligned Multimodal Language Sequences", ACL 2019) has the sentiment in `labels`, aligned_50.pkl (MMSA, W. Yu et al.,
AAAI 2021) in `regression_labels`. CMU_MOSEI_Labels.csv has one row per segment, with the columns file, index, start,
end, label2a, label2b, label6, label7 and split (published with s3prl, S. Yang et al., "SUPERB", Interspeech 2021).
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Float32, Int64, Shaped

from idiolect.core.errors import DataError
from idiolect.data.files.archive import AGAIN, find_gz, read_gz
from idiolect.data.files.safe_pickle import load_dictionary

FILES = ("mosei_senti_data.pkl", "aligned_50.pkl")
PUBLISHED = (
    f"'{FILES[0]}' is published at http://immortal.multicomp.cs.cmu.edu/raw_datasets/processed_data/cmu-mosei/ "
    f"(seq_length_50), '{FILES[1]}' with https://github.com/thuiar/MMSA; one of them is needed"
)
PARTS = {"train": "train", "valid": "validation", "test": "test"}
KEYS = {"text": "text", "audio": "audio", "video": "vision"}


@dataclass(frozen=True)
class Name:
    """An utterance: its video, and one of its number in the label file, its clip, and its start in seconds."""

    video: str
    number: int | None = None
    clip: str | None = None
    start: float | None = None

    def __str__(self) -> str:
        which = next(value for value in (self.number, self.clip, self.start) if value is not None)
        return f"{which} of video {self.video}"


@dataclass(frozen=True, eq=False)
class Features:
    """The features of all utterances: the training, then the validation, then the test part.

    values: by modality, (n, times, features) or (n, features); sentiment: -3 to 3; part: 'train', ...
    unvoiced: the number of audio values that were minus infinity and are set to zero, as both groups do.
    """

    where: str
    values: Mapping[str, Float32[np.ndarray, "n ..."]]
    sentiment: Float32[np.ndarray, "n"]
    names: tuple[Name, ...]
    part: Shaped[np.ndarray, "n"]
    unvoiced: int


def read_features(folder: Path, *, series: bool) -> Features:
    """Read the features of each time, or (not series) their mean over times; times that are all zero are padding."""
    paths = [path for name in FILES if (path := find_gz(folder, name)) is not None]
    if not paths:
        raise DataError(f"{folder} has neither {' nor '.join(FILES)} (or .gz); {PUBLISHED}")
    where = str(paths[0])
    content = load_dictionary(read_gz(paths[0]), where)
    values: dict[str, list[Float32[np.ndarray, "n ..."]]] = {modality: [] for modality in KEYS}
    sentiment: list[Float32[np.ndarray, "n"]] = []
    names: list[Name] = []
    unvoiced = 0
    for part in PARTS:
        content_of_part = _part(content, part, where)
        sentiment.append(_sentiment(content_of_part, f"{where}: {part}"))
        count = len(sentiment[-1])
        names += _names(content_of_part["id"], count, f"{where}: {part}, id")
        for modality, key in KEYS.items():
            table, silent = _table(
                content_of_part[key], count, f"{where}: {part}, {key}", inaudible=modality == "audio"
            )
            unvoiced += silent
            values[modality].append(table if series else _mean(table))
    for modality, parts in values.items():
        if len({part.shape[1:] for part in parts}) > 1:
            shapes = ", ".join(str(part.shape) for part in parts)
            raise DataError(f"{where}: {KEYS[modality]} differs in shape between the parts: {shapes}; {AGAIN}")
    lengths = {part[0].shape[1] for part in values.values()} if series else set[int]()
    if len(lengths) > 1:
        raise DataError(f"{where}: the modalities differ in length, {sorted(lengths)}: it is not the aligned file")
    return Features(
        where,
        {modality: np.concatenate(parts) for modality, parts in values.items()},
        np.concatenate(sentiment),
        tuple(names),
        np.repeat(list(PARTS.values()), [len(part) for part in sentiment]),
        unvoiced,
    )


def _part(content: Mapping[Any, Any], part: str, where: str) -> Mapping[Any, Any]:
    """One part, checked to have all its entries."""
    entries = content.get(part)
    if not isinstance(entries, dict):
        raise DataError(f"{where} has no dictionary '{part}'; {PUBLISHED}")
    for key in (*KEYS.values(), "id"):
        if key not in entries:
            raise DataError(f"{where}: {part} has no '{key}'; {PUBLISHED}")
    return entries


def _sentiment(entries: Mapping[Any, Any], where: str) -> Float32[np.ndarray, "n"]:
    """The sentiment of each utterance; the first number where there are several."""
    key = next((key for key in ("regression_labels", "labels") if key in entries), None)
    if key is None:
        raise DataError(f"{where} has neither 'labels' nor 'regression_labels'; {PUBLISHED}")
    numbers = np.asarray(entries[key])
    if numbers.dtype.kind not in "fiu" or numbers.size == 0:
        raise DataError(f"{where}, {key}: there must be a number for each utterance, it is {numbers.dtype}; {AGAIN}")
    values = numbers.reshape(len(numbers), -1)[:, 0].astype(np.float32)
    if len(bad := np.flatnonzero(~(np.abs(values) <= 3))):
        raise DataError(f"{where}, {key}: row {bad[0] + 1} is {values[bad[0]]:g}; sentiment is -3 to 3; {AGAIN}")
    return values


def _table(
    array: Any, count: int, where: str, *, inaudible: bool
) -> tuple[Float[np.ndarray, "n times features"], int]:
    """(values (n, times, features), number of values that were minus infinity, allowed only if `inaudible`)."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or array.ndim != 3 or len(array) != count:
        what = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise DataError(f"{where} must hold numbers of the shape ({count}, times, features), it is {what}; {AGAIN}")
    values = array.astype(np.float32)
    silent = np.isneginf(values) if inaudible else np.zeros(values.shape, bool)
    values[silent] = 0
    finite = np.isfinite(values).all(axis=(1, 2))
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(f"{where} has NaN or infinity in row {row + 1} ({(~finite).sum()} in all); {AGAIN}")
    return values, int(silent.sum())


def _mean(table: Float[np.ndarray, "n times features"]) -> Float32[np.ndarray, "n features"]:
    """The mean over the times that are not all zero; zero if all are."""
    lengths = (table != 0).any(axis=2).sum(axis=1)
    return (table.sum(axis=1, dtype=np.float64) / np.maximum(lengths, 1)[:, None]).astype(np.float32)


def _names(names: Any, count: int, where: str) -> list[Name]:
    """The names VIDEO[NUMBER], VIDEO$_$CLIP, or VIDEO, START, END."""
    entries = names.tolist() if isinstance(names, np.ndarray) else names
    if not isinstance(entries, list) or len(entries) != count:
        raise DataError(f"{where} must hold a name for each of {count} utterances; {AGAIN}")
    return [_name(entry, where) for entry in entries]


def _name(entry: Any, where: str) -> Name:
    fields = [_text(field) for field in (entry if isinstance(entry, list | tuple) else [entry])]
    first = fields[0] if fields else ""
    if numbered := re.fullmatch(r"(.+)\[(\d+)\]", first):
        return Name(numbered[1], number=int(numbered[2]))
    if "$_$" in first:
        video, clip = first.rsplit("$_$", 1)
        return Name(video, clip=clip)
    try:
        return Name(first, start=float(fields[1]))
    except (IndexError, ValueError) as error:
        raise DataError(
            f"{where}: '{first}' is no utterance's name: VIDEO[NUMBER], VIDEO$_$CLIP, or VIDEO, START, END; {AGAIN}"
        ) from error


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


LABELS_FILE = "CMU_MOSEI_Labels.csv"
LABELS_PUBLISHED = f"'{LABELS_FILE}' is published with https://github.com/s3prl/s3prl (s3prl/downstream/mosei)"
EMOTIONS = ("happy", "sad", "anger", "surprise", "disgust", "fear")
GRADES = tuple(f"{grade:+d}" if grade else "0" for grade in range(-3, 4))
NEAR = 0.5  # seconds between a segment's start in one file and in the other

_WHOLE = ("index", "label6", "label7")


def read_labels(folder: Path) -> pd.DataFrame:
    """Read and check the label file."""
    path = folder / LABELS_FILE
    if not path.is_file():
        raise DataError(f"missing file {path}; {LABELS_PUBLISHED}")
    try:
        table = pd.read_csv(path, dtype={"file": str}, keep_default_na=False)
    except (ValueError, OSError) as error:  # every parser error of pandas is a ValueError
        raise DataError(f"{path} is not a table: {' '.join(str(error).split())}; {AGAIN}") from error
    for column in ("file", "start", *_WHOLE):
        if column not in table:
            raise DataError(f"{path} has no column '{column}'; {LABELS_PUBLISHED}")
    for column in ("start", *_WHOLE):
        kinds = "iu" if column in _WHOLE else "iuf"
        if table[column].dtype.kind not in kinds:
            raise DataError(f"{path}: column '{column}' has an entry that is no number; {AGAIN}")
    for column, values in (("label6", range(len(EMOTIONS))), ("label7", range(-3, 4))):
        if len(bad := table[~table[column].isin(values)]):
            row = bad.iloc[0]
            raise DataError(f"{path}: {column} of {row['file']} is {row[column]}, not {values[0]}..{values[-1]}")
    if len(twice := table[table.duplicated(["file", "index"])]):
        raise DataError(
            f"{path}: video {twice.iloc[0]['file']} has the index {twice.iloc[0]['index']} twice; {AGAIN}"
        )
    return table


def matched(
    table: pd.DataFrame, names: Sequence[Name], sentiment: Float32[np.ndarray, "n"], where: str
) -> Int64[np.ndarray, "n"]:
    """The row of each utterance in the label file, -1 if it has none.

    A number matches the row's index. A video's clips, sorted as texts, match its rows if there are as many. A start
    matches the nearest row. Raises `DataError` if the two files disagree about a sentiment: sentiment and grade must
    have the same sign and differ by less than one.
    """
    videos = {str(video): clip_names.index.to_numpy() for video, clip_names in table.groupby("file")}
    index, start = table["index"].to_numpy(), table["start"].to_numpy(dtype=np.float64)
    clips: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if name.clip is not None:
            clips[name.video].add(name.clip)
    order = {video: sorted(clip_names) for video, clip_names in clips.items()}
    matches = np.full(len(names), -1, dtype=np.int64)
    for place, name in enumerate(names):
        rows = videos.get(name.video, np.empty(0, np.int64))
        if name.number is not None:
            rows = rows[index[rows] == name.number]
        elif name.clip is not None:
            same = len(order[name.video]) == len(rows)
            rank = order[name.video].index(name.clip)
            rows = rows[np.argsort(index[rows])][rank : rank + 1] if same else rows[:0]
        elif len(rows):
            rows = rows[[np.argmin(np.abs(start[rows] - name.start))]]
            rows = rows[np.abs(start[rows] - name.start) <= NEAR]
        matches[place] = rows[0] if len(rows) else -1
    grade = table["label7"].to_numpy()[matches].astype(np.float64)
    wrong = (np.sign(grade) != np.sign(sentiment)) | (np.abs(grade - sentiment) >= 1)
    if len(bad := np.flatnonzero(wrong & (matches >= 0))):
        first = bad[0]
        raise DataError(
            f"{where}: the sentiment of utterance {names[first]} is {sentiment[first]:g}, but {LABELS_FILE} grades "
            f"it {grade[first]:+g} ({len(bad)} disagree); the files do not belong together"
        )
    return matches
