"""idiolect: personalized federated learning in JAX. Every client ends with its own model."""

from idiolect import data, models
from idiolect.algorithms.base import Algorithm, Cohort
from idiolect.algorithms.fedavg import FedAvg, FedAvgFineTuned
from idiolect.algorithms.local import Global, Local
from idiolect.algorithms.perfedavg import PerFedAvg
from idiolect.algorithms.pfedme import PFedMe
from idiolect.api import Comparison, Run, compare, run
from idiolect.client import Client
from idiolect.data.federated import FederatedData
from idiolect.errors import ConfigError, DataError, DivergedError, IdiolectError, StoreError
from idiolect.models import load_model, save_model

__version__ = "0.1.0"

__all__ = [
    "Algorithm",
    "Client",
    "Cohort",
    "Comparison",
    "ConfigError",
    "DataError",
    "DivergedError",
    "FedAvg",
    "FedAvgFineTuned",
    "FederatedData",
    "Global",
    "IdiolectError",
    "Local",
    "PFedMe",
    "PerFedAvg",
    "Run",
    "StoreError",
    "compare",
    "data",
    "load_model",
    "models",
    "run",
    "save_model",
]
