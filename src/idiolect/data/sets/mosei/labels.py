"""Read CMU_MOSEI_Labels.csv: seven grades of sentiment and the strongest emotion of each utterance.

(Published with s3prl, S. Yang et al., "SUPERB", Interspeech 2021: a row a segment, with the columns file, index,
start, end, label2a, label2b, label6, label7 and split.)
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float32, Int64

from idiolect.core.errors import DataError
from idiolect.data.files.gz import AGAIN
from idiolect.data.sets.mosei.files import Name

FILE = "CMU_MOSEI_Labels.csv"
PUBLISHED = f"'{FILE}' is published with https://github.com/s3prl/s3prl (s3prl/downstream/mosei)"
EMOTIONS = ("happy", "sad", "anger", "surprise", "disgust", "fear")
GRADES = tuple(f"{grade:+d}" if grade else "0" for grade in range(-3, 4))
NEAR = 0.5  # seconds between a segment's start in one file and in the other

_WHOLE = ("index", "label6", "label7")


def read_labels(folder: Path) -> pd.DataFrame:
    """Read and check the label file."""
    path = folder / FILE
    if not path.is_file():
        raise DataError(f"missing file {path}; {PUBLISHED}")
    try:
        table = pd.read_csv(path, dtype={"file": str}, keep_default_na=False)
    except (ValueError, OSError) as error:  # every parser error of pandas is a ValueError
        raise DataError(f"{path} is not a table: {' '.join(str(error).split())}; {AGAIN}") from error
    for column in ("file", "start", *_WHOLE):
        if column not in table:
            raise DataError(f"{path} has no column '{column}'; {PUBLISHED}")
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
            f"{where}: the sentiment of utterance {names[first]} is {sentiment[first]:g}, but {FILE} grades it "
            f"{grade[first]:+g} ({len(bad)} disagree); the files do not belong together"
        )
    return matches
