"""Runs for TensorBoard: a folder of event files for each method, cell and seed."""

import json
import time
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, StoreError, os_errors_as
from idiolect.core.files import file_name, write_text
from idiolect.report.trackers.records import REPORT, Measured, Record, Sent, pictures

INSTALL = "--tensorboard needs the package 'tensorboardX'; install it: pip install 'idiolect[tensorboard]'"
MARK = "idiolect.json"
"""What a run's folder says of itself: which run it is, and how far it has it."""


class TensorBoard:
    """Writes event files under a folder; a run's are EXPERIMENT/CELL/METHOD/seedN.

    Raises `ConfigError` if tensorboardX is not installed, `StoreError` if a run's folder holds another run.
    """

    def __init__(self, where: str) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise ConfigError(INSTALL) from error
        self._make: Any = SummaryWriter
        self.folder = Path(where)
        self.where = f"tensorboard --logdir {where}"
        self._writers: dict[str, tuple[Any, Path, Sent]] = {}
        self._sent: set[str] = set()

    def take(self, record: Record, measured: Measured, final: bool) -> None:
        """Write what is new of a run."""
        with os_errors_as(f"cannot write {self.folder}"):
            self._take(record, measured, final)

    def _take(self, record: Record, measured: Measured, final: bool) -> None:
        if record.key in self._sent:
            return
        writer, folder, done = self._writer(record)
        before = done
        for round, values in measured(done):
            for name, value in values.items():
                writer.add_scalar(name, value, round)
            done = done.after(round, values)
        if done != before:
            writer.flush()
            self._writers[record.key] = writer, folder, done
            _mark(folder, record.key, done)
        if final:
            writer.close()
            self._sent.add(record.key)

    def finish(self, folder: Path, experiment: str) -> None:
        """Write the report as a text, and its figures as images."""
        target = self.folder / file_name(experiment) / "report"
        writer = self._make(str(target), filename_suffix=f".{time.time_ns()}")
        try:
            for name in REPORT:
                if name.endswith(".md") and (folder / name).is_file():
                    writer.add_text(name, (folder / name).read_text(), 0)
            for figure in pictures(folder):
                writer.add_image(figure.stem, _pixels(figure), 0, dataformats="HWC")
        finally:
            writer.close()

    def close(self) -> None:
        """Close every file."""
        for writer, _, _ in self._writers.values():
            writer.close()

    def _writer(self, record: Record) -> tuple[Any, Path, Sent]:
        """(writer, folder, how far it has it) of a run; settings are written when it is new."""
        if record.key not in self._writers:
            row = record.row
            parts = (record.experiment, row.cell, row.label, f"seed{row.seed}")
            folder = self.folder.joinpath(*map(file_name, parts))
            done = _done(folder, record.key)
            writer = self._make(str(folder), filename_suffix=f".{time.time_ns()}")
            if done is None:
                table = "\n".join(f"| {name} | {text} |" for name, text in {**record.params, **record.tags}.items())
                writer.add_text("settings", f"| setting | value |\n|---|---|\n{table}", 0)
            self._writers[record.key] = writer, folder, done or Sent()
        return self._writers[record.key]


def _pixels(file: Path) -> Any:
    """A picture's pixels, (height, width, 3)."""
    import numpy as np
    from PIL import Image

    with Image.open(file) as picture:
        return np.asarray(picture.convert("RGB"))


def _done(folder: Path, key: str) -> Sent | None:
    """How far a run's folder has it; None if it is new. Raises `StoreError` if it is another run's."""
    try:
        said = json.loads((folder / MARK).read_bytes())
        whose, sent = said["key"], Sent.of_text(str(said["sent"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder / MARK} cannot be read; use another --tensorboard, or delete {folder}") from error
    if whose != key:
        raise StoreError(f"'{folder}' holds another run; use another --tensorboard, or delete it")
    return sent


def _mark(folder: Path, key: str, sent: Sent) -> None:
    write_text(folder / MARK, json.dumps({"key": key, "sent": sent.to_text()}))
