"""A tracker for tests, which needs no library."""

from idiolect.core.errors import StoreError
from idiolect.report.trackers.records import Sent


class Made:
    """A tracker that notes what it is given."""

    where = "here"

    def __init__(self, fails=()):
        self.taken, self.finished, self.closed, self.fails = [], [], False, list(fails)
        self.report = ""

    def take(self, record, measured, final):
        if self.fails and self.fails.pop(0):
            raise StoreError("it is full")
        self.taken.append((record.row.id, [round for round, _ in measured(Sent())], final))

    def finish(self, folder, experiment):
        self.finished.append((folder, experiment))
        self.report = (folder / "report.md").read_text()

    def close(self):
        self.closed = True
