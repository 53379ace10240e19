"""The model zoo: builds a model by name from a specification and the data's shapes; and the loss that it names.

A function of this folder that `named` marks builds a model; nothing else lists it. Its mark has the fields of
`ModelEntry` as facts.
"""

import json
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.losses import LOSSES, SampleLoss, Weighted, cross_entropy
from idiolect.core.memory import check_fits
from idiolect.core.plugins import Registry, facts_of, named_functions
from idiolect.core.settings import Setting, validated
from idiolect.data.federated import FederatedData, TaskKind
from idiolect.data.modalities import Modalities
from idiolect.models.init import initialise
from idiolect.models.parts import separate
from idiolect.models.spec import ClassWeights, Initialisation, Loss, Penalty, Spec


@dataclass(frozen=True)
class ModelEntry:
    """A model of the zoo.

    builder: maps (complete spec, feature shape, outputs, key) to a model; packed: whether it takes packed samples of
    several modalities, with `Modalities` as their shape; description: one line; keys: the model's own settings, which
    `words` explains; tasks: those it can do; instead: the models to name in the error for another task.
    """

    builder: Callable[[Spec, Any, int, PRNGKeyArray], eqx.Module]
    description: str
    keys: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    words: str = ""
    tasks: tuple[TaskKind, ...] = get_args(TaskKind)
    instead: str = ""
    packed: bool = False


def _own() -> dict[str, ModelEntry]:
    return {
        name: ModelEntry(builder, **facts) for name, (builder, facts) in named_functions("idiolect.models").items()
    }


def _provided(name: str, builder: object) -> ModelEntry:
    """A model from another package: a function that is marked by `named`."""
    facts = facts_of(builder, name, ", description=...")
    return ModelEntry(cast("Callable[..., eqx.Module]", builder), **facts)


MODELS: MutableMapping[str, ModelEntry] = Registry("idiolect.models", _own, _provided)
_SHARED_KEYS = {
    "init": Setting(Initialisation, "pytorch"),
    "last_init": Setting(Initialisation | None, None),
    "l2": Setting(Penalty, 0.0),
    "loss": Setting(Loss | None, None),  # the task's own
    "class_weights": Setting(ClassWeights, "none"),
}


def settings_of_model(name: str) -> dict[str, Setting]:
    """The settings of a model, and those that every model has."""
    return {**MODELS[name].keys, **_SHARED_KEYS}


def complete_spec(spec: Spec | str) -> dict[str, Any]:
    """Return the complete, checked specification: every key of the model, with defaults for those not in `spec`.

    A bare name stands for {"name": name}.

    Raises:
        ConfigError: On an unknown name or key and on a bad value.
    """
    given: dict[str, Any] = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(f"a model specification needs a name ({', '.join(MODELS)}), not {name!r}")
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    settings = {**MODELS[name].keys, **_SHARED_KEYS}
    defaults = {key: setting.default for key, setting in settings.items()}
    return {"name": name, **validated(settings, {**defaults, **given}, f"model {name}", prefix="model.")}


def build(
    spec: Spec | str,
    feature_shape: tuple[int, ...],
    num_outputs: int,
    task: TaskKind | str,
    key: PRNGKeyArray,
    modalities: Modalities | None = None,
) -> eqx.Module:
    """Build a model of the zoo for data of this shape, initialised from `key`.

    The model maps one sample, (*feature_shape,), to (num_outputs,), or to () for `linear`.

    Args:
        modalities: The layout of packed samples.

    Raises:
        ConfigError: On a specification that `complete_spec` refuses, a model that cannot do the task, and shapes that
            do not fit it.
    """
    complete = complete_spec(spec)
    entry = MODELS[complete["name"]]
    if task not in get_args(TaskKind):
        raise unknown("task", task, get_args(TaskKind))
    if task not in entry.tasks:
        raise ConfigError(
            f"model {complete['name']} is for {entry.tasks[0]}, but the labels are for {task}; use {entry.instead}"
        )
    require(all(size > 0 for size in feature_shape), f"features of shape {feature_shape} hold no value")
    if task == "classification":
        require(num_outputs >= 2, f"classification needs at least two classes, but the data have {num_outputs}")
    else:
        require(num_outputs == 1, f"regression has one output, not {num_outputs}")
        require(complete["loss"] is None, f"loss '{complete['loss']}' is for classification; leave it out")
    if not entry.packed:
        return _made(complete, tuple(feature_shape), num_outputs, key)
    if modalities is None or (modalities.width,) != tuple(feature_shape):
        raise ConfigError(f"model {complete['name']} needs data of several modalities, which these are not; use mlp")
    return _made(complete, modalities, num_outputs, key)


def _made(complete: Spec, shape: tuple[int, ...] | Modalities, num_outputs: int, key: PRNGKeyArray) -> eqx.Module:
    """Build the model if this machine's memory can hold it; `ConfigError` if not, before anything is made."""
    arguments = (json.dumps(complete), shape, num_outputs, key)
    leaves = jax.tree.leaves(eqx.filter_eval_shape(_make, *arguments))
    needed = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct))
    check_fits(needed, f"the parameters of model {complete['name']}; make it smaller")
    return _make(*arguments)


@eqx.filter_jit
def _make(spec: str, shape: tuple[int, ...] | Modalities, num_outputs: int, key: PRNGKeyArray) -> eqx.Module:
    """Build and initialise in one compiled program, which is cached for other seeds."""
    complete = json.loads(spec)
    model = MODELS[complete["name"]].builder(complete, shape, num_outputs, key)
    model = initialise(model, complete["init"], key)
    if complete["last_init"] is None:
        return model
    params, static = eqx.partition(model, eqx.is_array)
    rest, last = separate(params)
    return eqx.combine(rest, initialise(last, complete["last_init"], key), static)


def l2_of(spec: Spec | str) -> float:
    """Return the weight of the L2 penalty of the objective, which is a key of the model's specification."""
    return complete_spec(spec)["l2"]


def loss_of(spec: Spec | str) -> SampleLoss | None:
    """Return the sample loss named in the specification; None for the task's default."""
    name = complete_spec(spec)["loss"]
    return None if name is None else LOSSES[name]


def describe_models() -> dict[str, str]:
    """Return each model's name and one line about it."""
    return {name: entry.description for name, entry in MODELS.items()}


def loss_for(spec: Spec | str, data: FederatedData) -> SampleLoss | None:
    """As `loss_of`, and with class_weights = "balanced" weighted by w_k = n / (K n_k).

    n_k: training samples of class k at all clients, n: of all classes, K: the number of classes. (scikit-learn's
    "balanced".) Raises `ConfigError` for a regression and where clients number their own classes.
    """
    loss = loss_of(spec)
    if complete_spec(spec)["class_weights"] == "none":
        return loss
    alike = data.task == "classification" and not data.own_labels
    require(alike, "model.class_weights = 'balanced' needs classes that mean the same at all clients")
    count = np.bincount(data.stored("train").y, minlength=data.num_outputs)
    weights = np.where(count > 0, count.sum() / (len(count) * np.maximum(count, 1)), 0.0)
    return Weighted(loss or cross_entropy, tuple(weights.tolist()))
