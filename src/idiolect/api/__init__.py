"""idiolect from Python: `run` one method, `compare` several, `sweep` their settings."""

from idiolect.api.compare import Comparison, compare
from idiolect.api.run import Run, run
from idiolect.api.sweep import SweepResult, sweep

__all__ = ["Comparison", "Run", "SweepResult", "compare", "run", "sweep"]
