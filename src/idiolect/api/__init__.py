"""The functions `run`, `compare` and `sweep`, which `idiolect` exports."""

from idiolect.api.advise import Advice, advise
from idiolect.api.compare import Comparison, compare
from idiolect.api.run import Run, run
from idiolect.api.sweep import SweepResult, sweep

__all__ = ["Advice", "Comparison", "Run", "SweepResult", "advise", "compare", "run", "sweep"]
