"""The functions `run`, `compare`, `combine` and `sweep`, which `idiolect` exports."""

from idiolect.api.advise import Advice, advise
from idiolect.api.combine import Combined, combine
from idiolect.api.compare import Comparison, compare
from idiolect.api.run import Run, run
from idiolect.api.sweep import SweepResult, sweep

__all__ = ["Advice", "Combined", "Comparison", "Run", "SweepResult", "advise", "combine", "compare", "run", "sweep"]
