"""Small files in the forms of CMU-MOSEI's: aligned features of two publishers, and the label file."""

import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np

WIDTHS = {"text": 6, "audio": 4, "vision": 3}
TIMES = 5
# Utterances of each video by published part. The clips of a video are not numbered without gaps.
VIDEOS = {
    "train": {"-3g5yACwYnA": 9, "v[0]x": 6, "lonely": 1},
    "valid": {"held_1": 4},
    "test": {"new_1": 7, "new$2": 5},
}
CLIPS = [10, 13, 2, 3, 4, 9, 20, 21, 5]


def features(form: str = "mult") -> dict[str, Any]:
    """The dictionary of a file; the first feature of each modality tells the utterance, at every time.

    form: 'mult', labels (n, 1, 1) and names VIDEO[NUMBER] with times; 'starts', names with the video alone; 'mmsa',
    regression_labels (n,) and names VIDEO$_$CLIP. The utterances of a part are in no order.
    """
    rng = np.random.default_rng(0)
    content: dict[str, Any] = {}
    first = 0
    for part, videos in VIDEOS.items():
        owned = [(video, number) for video, count in videos.items() for number in range(count)]
        order = rng.permutation(len(owned))
        own: dict[str, Any] = {}
        for modality, width in WIDTHS.items():
            values = rng.normal(1, 2, (len(owned), TIMES, width))
            values[:, :, 0] = (first + np.arange(len(owned)) + 1)[:, None]
            own[modality] = values.astype(np.float64 if modality == "audio" else np.float32)
        sentiment = np.array([_sentiment(video, number) for video, number in owned])[order]
        names = [_name(form, *owned[i]) for i in order]
        if form == "mmsa":
            own |= {"regression_labels": sentiment, "id": names, "raw_text": np.array(["words"] * len(owned))}
        else:
            own |= {"labels": sentiment.reshape(-1, 1, 1), "id": np.array(names, dtype=object)}
        content[part] = own
        first += len(owned)
    return content


def _rank(video: str, number: int) -> int:
    """The number in the label file of the video's utterance whose clip is CLIPS[number]."""
    count = next(videos[video] for videos in VIDEOS.values() if video in videos)
    return sorted(map(str, CLIPS[:count])).index(str(CLIPS[number]))


def _sentiment(video: str, number: int) -> float:
    return [-2.5, -1.0, -1 / 3, 0.0, 2 / 3, 1.0, 1.5, 3.0, -3.0][(_rank(video, number) + len(video)) % 9]


def _name(form: str, video: str, number: int) -> Any:
    rank = _rank(video, number)
    if form == "mmsa":
        return f"{video}$_${CLIPS[number]}"
    return [video if form == "starts" else f"{video}[{rank}]", f"{10.0 * rank + 0.2}", f"{10.0 * rank + 9}"]


def write_mosei(
    root: Path, form: str = "mult", content: dict[str, Any] | None = None, *, packed: bool = False
) -> Path:
    """Write `root/mosei/` with the features; without the label file."""
    (root / "mosei").mkdir(parents=True, exist_ok=True)
    name = "aligned_50.pkl" if form == "mmsa" else "mosei_senti_data.pkl"
    raw = pickle.dumps(features(form) if content is None else content, 4)
    (root / "mosei" / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(raw) if packed else raw)
    return root


def write_labels(root: Path, change: dict[str, str] | None = None) -> Path:
    """Write `root/mosei/CMU_MOSEI_Labels.csv`; the emotion is (number + length of the video's name) mod 6."""
    lines = [",file,index,start,end,label2a,label2b,label6,label7,split"]
    for code, videos in enumerate(VIDEOS.values()):
        for video, count in videos.items():
            for number in range(count):
                rank = _rank(video, number)
                value = _sentiment(video, number)
                grade = int(np.sign(value) * np.ceil(abs(value)))
                fields = (len(lines), video, rank, 10.0 * rank, 10.0 * rank + 9, int(value >= 0), int(np.sign(value)))
                lines.append(",".join(map(str, (*fields, (rank + len(video)) % 6, grade, code))))
    text = "\n".join(lines) + "\n"
    for old, new in (change or {}).items():
        assert old in text
        text = text.replace(old, new, 1)
    (root / "mosei" / "CMU_MOSEI_Labels.csv").write_text(text)
    return root
