"""idiolect: personalized federated learning in JAX. Every client ends with its own model.

Public is what this package, `idiolect.data`, `idiolect.graphs` and `idiolect.models` export in `__all__`, and the
scikit-learn estimators `PersonalizedClassifier` and `PersonalizedRegressor`, which are loaded when they are asked
for. All other modules are internal and may change.
"""

from typing import TYPE_CHECKING, Any

from idiolect import data, graphs, models
from idiolect.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from idiolect.algorithms.afl import AFL
from idiolect.algorithms.apfl import APFL
from idiolect.algorithms.base import Algorithm, Cohort
from idiolect.algorithms.ditto import Ditto
from idiolect.algorithms.fedavg import FedAvg, FedAvgFineTuned
from idiolect.algorithms.fedbabu import FedBABU
from idiolect.algorithms.feddane import FedDANE
from idiolect.algorithms.fedper import FedPer, LGFedAvg
from idiolect.algorithms.fedprox import FedProx
from idiolect.algorithms.fedrecon import FedRecon
from idiolect.algorithms.fedrep import FedRep
from idiolect.algorithms.fedsgd import FedSGD
from idiolect.algorithms.fedu import DFedU, FedU
from idiolect.algorithms.l2gd import L2GD
from idiolect.algorithms.local import Global, Local
from idiolect.algorithms.mmfl import MmFL
from idiolect.algorithms.mmfl_fusion import MmFLFusion
from idiolect.algorithms.mocha import Mocha
from idiolect.algorithms.oneshot import OneShot
from idiolect.algorithms.perfedavg import PerFedAvg
from idiolect.algorithms.pfedme import PFedMe
from idiolect.algorithms.pflego import PFLEGO
from idiolect.algorithms.reptile import Reptile
from idiolect.algorithms.scaffold import Scaffold
from idiolect.api import Advice, Comparison, Run, SweepResult, advise, compare, run, sweep
from idiolect.client.client import Client
from idiolect.core.errors import ConfigError, DataError, DivergedError, IdiolectError, StoreError
from idiolect.data.federated import FederatedData
from idiolect.models import load_model, save_model
from idiolect.runtime.devices import use_cores
from idiolect.runtime.split_learning import SplitRun

if TYPE_CHECKING:
    from idiolect.api.estimators import PersonalizedClassifier as PersonalizedClassifier
    from idiolect.api.estimators import PersonalizedRegressor as PersonalizedRegressor

__version__ = "0.1.0"

__all__ = [
    "AFL",
    "APFL",
    "L2GD",
    "PFLEGO",
    "Advice",
    "Algorithm",
    "Client",
    "Cohort",
    "Comparison",
    "ConfigError",
    "DFedU",
    "DataError",
    "Ditto",
    "DivergedError",
    "FedAdagrad",
    "FedAdam",
    "FedAvg",
    "FedAvgFineTuned",
    "FedBABU",
    "FedDANE",
    "FedPer",
    "FedProx",
    "FedRecon",
    "FedRep",
    "FedSGD",
    "FedU",
    "FedYogi",
    "FederatedData",
    "Global",
    "IdiolectError",
    "LGFedAvg",
    "Local",
    "MmFL",
    "MmFLFusion",
    "Mocha",
    "OneShot",
    "PFedMe",
    "PerFedAvg",
    "Reptile",
    "Run",
    "Scaffold",
    "SplitRun",
    "StoreError",
    "SweepResult",
    "advise",
    "compare",
    "data",
    "graphs",
    "load_model",
    "models",
    "run",
    "save_model",
    "sweep",
    "use_cores",
]

_ESTIMATORS = ("PersonalizedClassifier", "PersonalizedRegressor")


def __getattr__(name: str) -> Any:
    """The estimators, which alone import scikit-learn; `ConfigError` if it is not there."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module 'idiolect' has no attribute {name!r}")
    from idiolect.api import estimators

    return getattr(estimators, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ESTIMATORS])
