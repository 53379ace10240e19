"""CMU-MOSI: opinions in 93 videos, 2,199 utterances by text, audio and video, positive or negative.

(A. Zadeh et al., "MOSI: Multimodal Corpus of Sentiment Intensity", 2016; the utterance features are those of
S. Poria et al., "Context-Dependent Sentiment Analysis in User-Generated Videos", ACL 2017.)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
from jaxtyping import Shaped

from idiolect.core.errors import DataError
from idiolect.data.divide.missing import Missing, MissingPattern
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.files.folder import data_folder
from idiolect.data.files.gz import AGAIN
from idiolect.data.modalities import Modalities
from idiolect.data.sets.mosei.utterances import Options, Utterances, from_utterances

FILE = "mosi_utterance_features.npz"
PUBLISHED = (
    f"'{FILE}' holds, for train and test, the arrays PART_text, PART_audio, PART_video, PART_label and "
    "PART_utterance (VIDEO_NUMBER), from the features published with "
    "https://github.com/declare-lab/contextual-utterance-level-multimodal-sentiment-analysis (data/)"
)
FEATURES = {"text": 100, "audio": 73, "video": 100}
CLASSES = ("negative", "positive")
COMPLETE = 2_199


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

    folder: contains `mosi/` with the file of utterance features; by default the environment variable IDIOLECT_DATA.
    modalities: any of text (100 features), audio (73) and video (100).
    clients, split, new, minimum: see `Options`; the published split has 62 videos for training and 31, of other
        speakers, for testing.
    normalisation: 'none', or 'zscore-train', each feature by its mean and deviation in training.
    All other settings: see `Missing`.
    """
    pattern = MissingPattern(**absence)
    how = Options(modalities, clients, split, new, normalisation, minimum, test, validation, split_seed)
    return from_utterances(read_mosi(folder), how, pattern, source="mosi")


def read_mosi(folder: str | Path | None = None) -> Utterances:
    """Read and check all utterances, the published training part before the test part."""
    path = data_folder(folder, "mosi", PUBLISHED) / FILE
    arrays = _arrays(path)
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
            _check(arrays[f"{part}_{modality}"], (len(label), width), f"{path}: {part}_{modality}")
        x.append(np.concatenate([arrays[f"{part}_{modality}"] for modality in FEATURES], axis=1))
        labels.append(label.astype(np.int32))
        videos.append(np.array([name.rsplit("_", 1)[0] for name in names]))
    both = sorted(set(videos[0]) & set(videos[1]))
    if both:
        raise DataError(f"{path}: video '{both[0]}' is in the training and in the test part; {AGAIN}")
    count = sum(map(len, labels))
    notes = [f"{INCOMPLETE}{count:,} utterances of {COMPLETE:,}"] if count != COMPLETE else []
    return Utterances(
        x=np.concatenate(x).astype(np.float32),
        y=np.concatenate(labels),
        layout=Modalities(tuple(FEATURES), tuple((width,) for width in FEATURES.values())),
        video=np.concatenate(videos),
        part=np.repeat(["train", "test"], [len(part) for part in labels]),
        classes=CLASSES,
        notes=tuple(notes),
    )


def _arrays(path: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The needed arrays of the file; pickled ones are refused."""
    if not path.is_file():
        raise DataError(f"missing file {path}; {PUBLISHED}")
    wanted = [f"{part}_{key}" for part in ("train", "test") for key in (*FEATURES, "label", "utterance")]
    try:
        with np.load(path, allow_pickle=False) as file:
            for key in wanted:
                if key not in file:
                    raise DataError(f"{path} has no array '{key}'; {PUBLISHED}")
            return {key: file[key] for key in wanted}
    except DataError:
        raise
    except Exception as error:  # whatever zipfile and numpy meet in a damaged file
        raise DataError(f"{path} is truncated, damaged or not an .npz of plain arrays ({error}); {AGAIN}") from error


def _check(values: Shaped[np.ndarray, "..."], shape: tuple[int, int], where: str) -> None:
    if values.dtype.kind != "f" or values.shape != shape:
        raise DataError(
            f"{where} must hold numbers of the shape {shape}, it is {values.dtype} {values.shape}; {AGAIN}"
        )
    if len(bad := np.flatnonzero(~np.isfinite(values).all(axis=1))):
        raise DataError(f"{where} has NaN or infinity in row {bad[0] + 1} ({len(bad)} in all); {AGAIN}")
