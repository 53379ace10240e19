"""The methods by name: a specification makes a checked method."""

from collections.abc import Mapping
from typing import Any

from idiolect.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from idiolect.algorithms.afl import AFL
from idiolect.algorithms.apfl import APFL
from idiolect.algorithms.base import Algorithm
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
from idiolect.core.errors import ConfigError, unknown
from idiolect.core.settings import settings_of, validated

ALGORITHMS: dict[str, type[Algorithm]] = {
    cls.name: cls
    for cls in (
        PFedMe,
        PerFedAvg,
        FedAvg,
        FedAvgFineTuned,
        FedProx,
        Scaffold,
        AFL,
        FedDANE,
        FedSGD,
        OneShot,
        FedAdagrad,
        FedAdam,
        FedYogi,
        Reptile,
        Ditto,
        APFL,
        L2GD,
        FedU,
        DFedU,
        Mocha,
        PFLEGO,
        FedPer,
        LGFedAvg,
        FedRep,
        FedBABU,
        FedRecon,
        MmFL,
        MmFLFusion,
        Local,
        Global,
    )
}
MODEL_NAMES = frozenset(name for cls in ALGORITHMS.values() for name in cls.model_names)
"""The names of models that any method has, whatever its settings."""


def build(spec: Mapping[str, Any] | str) -> Algorithm:
    """Build a method from {"name": ..., hyper-parameter: value, ...}, or from a bare name with its defaults.

    Raises `ConfigError` naming an unknown method or key (with the nearest known one), a value of the wrong type,
    or one out of range.
    """
    given = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(f"a method needs a name ({', '.join(ALGORITHMS)}), not {name!r}")
    if name not in ALGORITHMS:
        raise unknown("method", name, ALGORITHMS)
    cls = ALGORITHMS[name]
    return cls(**validated(settings_of(cls), given, f"method {name}", prefix=f"{name}: "))


def hyperparameters(cls: type[Algorithm]) -> dict[str, Any]:
    """Every hyper-parameter of a method with its default."""
    return {name: setting.default for name, setting in settings_of(cls).items()}


def offers_more(cls: type[Algorithm]) -> bool:
    """Whether the method can have models beside `model_names`, which its settings, the data or the model decide."""
    return cls.offered is not Algorithm.offered


def describe_methods() -> dict[str, str]:
    """Each method's name, and one line with what it is and its source."""
    return {name: f"{cls.summary} ({cls.source})" for name, cls in ALGORITHMS.items()}
