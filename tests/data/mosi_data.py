"""A small set of utterance features in the form of CMU-MOSI's; the first feature of each modality tells the row."""

from pathlib import Path

import numpy as np

FEATURES = {"text": 100, "audio": 73, "video": 100}
# Utterances of each video; the last one is too small to be divided.
VIDEOS = {"train": {"aa_1": 12, "b-c": 5, "ddd": 8, "single": 1}, "test": {"new_one": 9, "new_two": 7}}


def mosi_arrays() -> dict[str, np.ndarray]:
    """The arrays of the file; row k of all utterances begins with k, k + 1000, k + 2000."""
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    first = 0
    for part, videos in VIDEOS.items():
        names = [f"{video}_{number}" for video, count in videos.items() for number in range(count)]
        names = [names[i] for i in rng.permutation(len(names))]
        for place, (modality, width) in enumerate(FEATURES.items()):
            values = rng.normal(place, 2, (len(names), width))
            values[:, 0] = first + np.arange(len(names)) + 1000 * place
            arrays[f"{part}_{modality}"] = values.astype(np.float32)
        arrays[f"{part}_label"] = rng.integers(0, 2, len(names)).astype(np.uint8)
        arrays[f"{part}_utterance"] = np.array(names)
        first += len(names)
    return arrays


def write_mosi(root: Path, arrays: dict[str, np.ndarray] | None = None) -> Path:
    """Write `root/mosi/mosi_utterance_features.npz`."""
    (root / "mosi").mkdir(parents=True, exist_ok=True)
    np.savez_compressed(root / "mosi" / "mosi_utterance_features.npz", **(arrays or mosi_arrays()))
    return root
