# Written by python -m docs.make.stub.
from idiolect import data as data
from idiolect import graphs as graphs
from idiolect import models as models
from idiolect.algorithms.adaptive import FedAdagrad as FedAdagrad
from idiolect.algorithms.adaptive import FedAdam as FedAdam
from idiolect.algorithms.adaptive import FedYogi as FedYogi
from idiolect.algorithms.afl import AFL as AFL
from idiolect.algorithms.apfl import APFL as APFL
from idiolect.algorithms.base import Algorithm as Algorithm
from idiolect.algorithms.base import Cohort as Cohort
from idiolect.algorithms.boosted_intercept import BoostedIntercept as BoostedIntercept
from idiolect.algorithms.ditto import Ditto as Ditto
from idiolect.algorithms.fedavg import FedAvg as FedAvg
from idiolect.algorithms.fedavg import FedAvgFineTuned as FedAvgFineTuned
from idiolect.algorithms.fedavg_intercept import FedAvgIntercept as FedAvgIntercept
from idiolect.algorithms.fedbabu import FedBABU as FedBABU
from idiolect.algorithms.feddane import FedDANE as FedDANE
from idiolect.algorithms.fedper import FedPer as FedPer
from idiolect.algorithms.fedper import LGFedAvg as LGFedAvg
from idiolect.algorithms.fedprox import FedProx as FedProx
from idiolect.algorithms.fedrecon import FedRecon as FedRecon
from idiolect.algorithms.fedrep import FedRep as FedRep
from idiolect.algorithms.fedsgd import FedSGD as FedSGD
from idiolect.algorithms.fedu import DFedU as DFedU
from idiolect.algorithms.fedu import FedU as FedU
from idiolect.algorithms.ifca import IFCA as IFCA
from idiolect.algorithms.l2gd import L2GD as L2GD
from idiolect.algorithms.local import Global as Global
from idiolect.algorithms.local import Local as Local
from idiolect.algorithms.local_trees import LocalTrees as LocalTrees
from idiolect.algorithms.mmfl import MmFL as MmFL
from idiolect.algorithms.mmfl_fusion import MmFLFusion as MmFLFusion
from idiolect.algorithms.mocha import Mocha as Mocha
from idiolect.algorithms.oneshot import OneShot as OneShot
from idiolect.algorithms.perfedavg import PerFedAvg as PerFedAvg
from idiolect.algorithms.pfedme import PFedMe as PFedMe
from idiolect.algorithms.pflego import PFLEGO as PFLEGO
from idiolect.algorithms.reptile import Reptile as Reptile
from idiolect.algorithms.scaffold import Scaffold as Scaffold
from idiolect.api import Advice as Advice
from idiolect.api import Combined as Combined
from idiolect.api import Comparison as Comparison
from idiolect.api import Run as Run
from idiolect.api import SweepResult as SweepResult
from idiolect.api import advise as advise
from idiolect.api import combine as combine
from idiolect.api import compare as compare
from idiolect.api import run as run
from idiolect.api import sweep as sweep
from idiolect.api.combined_estimators import CombinedClassifier as CombinedClassifier
from idiolect.api.combined_estimators import CombinedRegressor as CombinedRegressor
from idiolect.api.estimators import PersonalizedClassifier as PersonalizedClassifier
from idiolect.api.estimators import PersonalizedRegressor as PersonalizedRegressor
from idiolect.client.client import Client as Client
from idiolect.core.errors import ConfigError as ConfigError
from idiolect.core.errors import DataError as DataError
from idiolect.core.errors import DivergedError as DivergedError
from idiolect.core.errors import IdiolectError as IdiolectError
from idiolect.core.errors import StoreError as StoreError
from idiolect.data.federated import FederatedData as FederatedData
from idiolect.models import load_model as load_model
from idiolect.models import save_model as save_model
from idiolect.runtime.devices import use_cores as use_cores
from idiolect.runtime.split_learning import SplitRun as SplitRun

__version__: str
HOMES: dict[str, str]
PACKAGES: tuple[str, ...]
EXTRA: tuple[str, ...]

__all__ = [
    "AFL",
    "APFL",
    "IFCA",
    "L2GD",
    "PFLEGO",
    "Advice",
    "Algorithm",
    "BoostedIntercept",
    "Client",
    "Cohort",
    "Combined",
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
    "FedAvgIntercept",
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
    "LocalTrees",
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
    "combine",
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
