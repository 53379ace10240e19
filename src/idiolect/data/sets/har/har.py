"""Human activity recognition (UCI HAR): 30 people with a phone at the waist, six activities.

`har` has the published features, `har_modalities` one modality per sensor with its raw signals.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from idiolect.core.errors import require, unknown
from idiolect.core.plugins import named
from idiolect.data.divide.missing import Missing, MissingPattern, drop_modalities
from idiolect.data.encode.normalisation import check_scaling, packing, provenance_of, standardise
from idiolect.data.federated import INCOMPLETE, FederatedData
from idiolect.data.modalities import Modalities
from idiolect.data.partition import apply_partition
from idiolect.data.sets.har.windows import (
    CHANNELS,
    KINDS,
    SENSORS,
    WINDOW,
    Division,
    channels_of,
    divided,
    notes_on,
    read_windows,
)


@named("har", task="classification")
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

    Args:
        folder: Contains `har/` with the published zip or its extracted folder; by default the environment variable
            IDIOLECT_DATA.
        features: '561' published features, '265' (the first 265 of them, all from the time domain), or 'signals',
            windows of 128 samples x channels; by default 561 if the files are there, else 265.
        signals: Sensors (body_acc, body_gyro, total_acc) or single channels (total_acc_x); by default all nine
            channels.
        split: 'blocked' by time (of each activity of each person the first part trains, the last tests, and no window
            of one split overlaps one of another), 'random' as in the papers, where test windows overlap training
            ones, or 'subjects', where people who do not train are tested: see `assign_evenly`.
        held_out: For split='subjects', the numbers of the people who do not train; by default those of the official
            test files.
        new: For split='subjects', these people are the clients, each divided by time, to test a model trained on the
            others, before or after it has seen their training windows.
        normalisation: 'none'; 'zscore-train', each feature or channel by its mean and deviation in training; or
            'window', each channel by its mean and deviation in the same window.
        downsample: See `downsample`; the clients are drawn by split_seed, which also divides a random split.
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


@named("har-modalities", task="classification")
def har_modalities(
    folder: str | Path | None = None,
    modalities: str | Sequence[str] = ("body_acc", "body_gyro"),
    *,
    clients: int | None = None,
    split: str = "blocked",
    new: bool = False,
    held_out: Sequence[int] | None = None,
    normalisation: str = "zscore-train",
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    downsample: float | None = None,
    downsample_test: float | None = None,
    **absence: Unpack[Missing],
) -> FederatedData:
    """Human activity (UCI HAR) by modality: raw signals of 30 people's accelerometers and gyroscopes.

    All other settings: see `Missing`.

    Args:
        modalities: Any of body_acc (the accelerometer less gravity), body_gyro and total_acc (the accelerometer as it
            measures), each of shape (128, 3): 2.56 s at 50 Hz, three axes.
        clients: Merge the people into so many clients; by default every person is one.
        folder: See `har`.
        split: See `har`.
        held_out: See `har`.
        new: See `har`.
        normalisation: See `har`.
        downsample: See `har`.
    """
    pattern = MissingPattern(**absence)
    layout = layout_of(modalities)
    how = Division(split, new, held_out, test, validation, split_seed, downsample, downsample_test)
    check_scaling(normalisation)
    windows = read_windows(folder, "signals", channels_of(layout.names))
    division = divided(windows, how)
    data = apply_partition(
        division.partition,
        windows.x,
        windows.y,
        name=f"har-modalities/{'+'.join(layout.names)}/{split}{'/new' if new else ''}",
        task="classification",
        classes=windows.classes,
        encode=packing(layout, windows.x, normalisation, division.fitted),
        notes=notes_on(windows, division),
        modalities=layout,
        provenance={
            "source": "har-modalities",
            "arguments": {
                "modalities": list(layout.names),
                "clients": clients,
                "normalisation": normalisation,
                **how.arguments,
                **pattern.arguments,
            },
            "normalisation": provenance_of(normalisation, "none", "nothing"),
            "leaks": list(division.leaks),
        },
    )
    return drop_modalities(data if clients is None else data.merged(clients), pattern)


def layout_of(modalities: str | Sequence[str]) -> Modalities:
    """The layout of packed windows of these sensors; raises `ConfigError` on an unknown one."""
    names = (modalities,) if isinstance(modalities, str) else tuple(modalities)
    for name in names:
        if name not in SENSORS:
            raise unknown("modality", name, SENSORS)
    return Modalities(names, tuple((WINDOW, 3) for _ in names))
