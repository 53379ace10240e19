"""The good checkpoints of a run at a hub: states from which an evaluation has found nothing wrong."""

from pathlib import Path

from idiolect.core.errors import StoreError
from idiolect.deploy.hub.journal import HubState


class Checkpoints:
    """The newest good checkpoints of a run. path: of its newest checkpoint, good or not; most: so many are kept."""

    def __init__(self, path: Path, run: str, most: int) -> None:
        self._path, self._run, self._most = path, run, most

    def _file(self, round: int) -> Path:
        return self._path.with_name(f"{self._path.stem}.good-{round}{self._path.suffix}")

    def has(self, round: int) -> bool:
        """Whether there is a good checkpoint of a round."""
        return self._file(round).is_file()

    @property
    def rounds(self) -> list[int]:
        """The rounds of all good checkpoints, ascending."""
        start, end = f"{self._path.stem}.good-", self._path.suffix
        names = [path.name for path in self._path.parent.glob("*.good-*") if path.name.startswith(start)]
        numbers = [name.removeprefix(start).removesuffix(end) for name in names]
        return sorted(int(number) for number in numbers if number.isdigit())

    def save(self, state: HubState) -> None:
        """Keep a state durably, and remove those that are neither among the newest nor before it."""
        state.save(self._file(state.round), self._run)
        later = [round for round in self.rounds if round > state.round]
        old = [round for round in self.rounds if round <= state.round][: -self._most]
        for round in [*later, *old]:
            self._file(round).unlink(missing_ok=True)

    def load(self, round: int) -> HubState:
        """The state of a good checkpoint. Raises `StoreError` if it is missing or damaged."""
        state = HubState.load(self._file(round), self._run)
        if state is None:
            raise StoreError(f"{self._file(round)} is missing; restore it from a backup")
        return state
