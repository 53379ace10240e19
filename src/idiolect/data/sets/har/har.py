"""Human activity recognition (UCI HAR): 30 people with a phone at the waist, six activities."""

from collections.abc import Sequence
from pathlib import Path

from idiolect.core.errors import require, unknown
from idiolect.data.encode.scaling import check_scaling, provenance_of, standardise
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.partition import apply_partition
from idiolect.data.sets.har.division import Division, divided, notes_on
from idiolect.data.sets.har.files import CHANNELS, KINDS, channels_of, read_windows


def har(
    folder: str | Path | None = None,
    features: str | int | None = None,
    *,
    signals: str | Sequence[str] | None = None,
    split: str = "blocked",
    new: bool = False,
    held_out: Sequence[int] | None = None,
    normalisation: str = "none",
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    downsample: float | None = None,
    downsample_test: float | None = None,
) -> FederatedData:
    """Human activity (UCI HAR): 30 people, six activities, windows of 2.56 s of their phones' sensors.

    folder: contains `har/` with the published zip or its extracted folder; by default the environment variable
        IDIOLECT_DATA.
    features: '561' published features, '265' (the first 265 of them, all from the time domain), or 'signals',
        windows of 128 samples x channels; by default 561 if the files are there, else 265.
    signals: sensors (body_acc, body_gyro, total_acc) or single channels (total_acc_x); by default all nine channels.
    split: 'blocked' by time (of each activity of each person the first part trains, the last tests, and no window
        of one split overlaps one of another), 'random' as in the papers, where test windows overlap training ones,
        or 'subjects', where people who do not train are tested: see `assign_evenly`.
    held_out: for split='subjects', the numbers of the people who do not train; by default those of the official test
        files. new: for split='subjects', these people are the clients, each divided by time, to test a model trained
        on the others, before or after it has seen their training windows.
    normalisation: 'none'; 'zscore-train', each feature or channel by its mean and deviation in training; or
        'window', each channel by its mean and deviation in the same window.
    downsample: see `downsample`; the clients are drawn by split_seed, which also divides a random split.
    """
    kind = None if features is None else str(features)
    if kind is not None and kind not in KINDS:
        raise unknown("features", kind, KINDS)
    how = Division(split, new, held_out, test, validation, split_seed, downsample, downsample_test)
    check_scaling(normalisation)
    channels = CHANNELS
    if signals is not None:
        require(kind in (None, "signals"), f"signals goes with features='signals', not {kind}")
        kind, channels = "signals", channels_of([signals] if isinstance(signals, str) else signals)
    windows = read_windows(folder, kind, channels)
    division = divided(windows, how)
    notes = notes_on(windows, division)
    if windows.kind == "265":
        notes.append(f"{INCOMPLETE}features are the first 265 of the 561 published ones (time domain)")
    raw = windows.kind == "signals"
    return apply_partition(
        division.partition,
        windows.x,
        windows.y,
        name=f"har/{windows.kind}/{split}{'/new' if new else ''}",
        task="classification",
        classes=windows.classes,
        encode=standardise(normalisation, windows.x, division.fitted),
        notes=notes,
        provenance={
            "source": "har",
            "arguments": {
                "features": windows.kind,
                "signals": list(channels) if raw else None,
                "normalisation": normalisation,
                **how.arguments,
            },
            "normalisation": provenance_of(
                normalisation, *(("none", "nothing") if raw else ("scaled by the publisher", "all"))
            ),
            "leaks": list(division.leaks),
        },
    )
