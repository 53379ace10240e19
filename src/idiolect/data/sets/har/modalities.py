"""UCI HAR with a modality for each sensor's raw signals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from idiolect.core.errors import unknown
from idiolect.data.divide.missing import Missing, MissingPattern, drop_modalities
from idiolect.data.encode.packing import packing
from idiolect.data.encode.scaling import check_scaling, provenance_of
from idiolect.data.federated import FederatedData
from idiolect.data.modalities import Modalities
from idiolect.data.partition import apply_partition
from idiolect.data.sets.har.division import Division, divided, notes_on
from idiolect.data.sets.har.files import SENSORS, WINDOW, channels_of, read_windows


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

    modalities: any of body_acc (the accelerometer less gravity), body_gyro and total_acc (the accelerometer as it
        measures), each of shape (128, 3): 2.56 s at 50 Hz, three axes.
    clients: merge the people into so many clients; by default every person is one.
    folder, split, held_out, new, normalisation, downsample: see `har`. All other settings: see `Missing`.
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
