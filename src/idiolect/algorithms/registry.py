"""The methods by name: a specification makes a checked method.

A file of this folder with a named class is a method; nothing else lists it.
"""

import hashlib
import json
import pickle
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np

import idiolect.algorithms
from idiolect.algorithms.base import Algorithm
from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.plugins import Registry, named_classes
from idiolect.core.settings import settings_of, validated


def _provided(name: str, cls: object) -> type[Algorithm]:
    """A method's class from another package."""
    if not isinstance(cls, type) or not issubclass(cls, Algorithm):
        raise ConfigError("it is not a subclass of idiolect.Algorithm")
    require(getattr(cls, "name", None) == name, f"the class has the name {getattr(cls, 'name', None)!r}")
    register(cls)
    return cls


OWN = {cls.name: cls for cls in named_classes(idiolect.algorithms, Algorithm)}
"""The methods of idiolect itself."""
ALGORITHMS: MutableMapping[str, type[Algorithm]] = Registry("idiolect.methods", OWN, _provided)
_OBJECTS: dict[str, Any] = {}
"""The settings of a user's methods that are no plain values, by the text that stands for each."""


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
    objects = {key: _OBJECTS[value] for key, value in given.items() if isinstance(value, str) and value in _OBJECTS}
    plain = {key: value for key, value in given.items() if key not in objects}
    settings = {key: setting for key, setting in settings_of(cls).items() if key not in objects}
    return cls(**validated(settings, plain, f"method {name}", prefix=f"{name}: "), **objects)


def register(cls: type[Algorithm]) -> str:
    """Make a user's own class a method of this process, known by its name; returns the name.

    A class that was defined again, as a notebook does, replaces the earlier one. Raises `ConfigError` for a class
    without a name of its own.
    """
    name = getattr(cls, "name", None)
    example = "set name: ClassVar[str] = 'my-method'"
    if not isinstance(name, str) or re.fullmatch(r"[\w-]+", name) is None:
        raise ConfigError(f"the class {cls.__name__} needs a name of letters, digits and hyphens: {example}")
    known = ALGORITHMS.get(name, cls)
    if known is not cls and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ConfigError(f"the class {cls.__name__} has the name '{name}' of {known.__name__}: {example}")
    for text, default in (("title", name), ("summary", ""), ("source", "")):
        if not isinstance(getattr(cls, text, None), str):
            setattr(cls, text, default)
    ALGORITHMS[name] = cls
    return name


def specification(method: Algorithm) -> dict[str, Any]:
    """The specification from which `build` makes an equal method in this process.

    It has the settings that differ from their defaults. One that is not a plain value, such as a graph or a function,
    is kept for this process and is in the specification as a text made of its content.
    """
    spec: dict[str, Any] = {"name": register(type(method))}
    for field in fields(method):
        value = getattr(method, field.name)
        if field.init and value is not field.default:
            plain, value = _plain(value)
            if not plain:
                spec[field.name] = _kept(value)
            elif value != field.default or type(value) is not type(field.default):
                spec[field.name] = value
    return spec


def _plain(value: Any) -> tuple[bool, Any]:
    """(whether JSON can hold it, it without arrays of one number)."""
    if isinstance(value, np.generic | np.ndarray | jax.Array) and np.ndim(value) == 0:
        value = value.item()
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False, value
    return True, value


def _kept(value: Any) -> str:
    """A text that stands for an object; equal content gives the same text, also in another process."""
    held: Any = value
    if is_dataclass(value) and not isinstance(value, type):  # its fields only, not what it has computed from them
        held = [type(value), *(getattr(value, field.name) for field in fields(value))]
    try:
        content = pickle.dumps(held)
    except Exception:  # a lambda, a local class: no other process has it
        content = str(id(value)).encode()
    text = f"own-{hashlib.sha256(content).hexdigest()[:16]}"
    _OBJECTS[text] = value
    return text


def hyperparameters(cls: type[Algorithm]) -> dict[str, Any]:
    """Every hyper-parameter of a method with its default."""
    return {name: setting.default for name, setting in settings_of(cls).items()}


def offers_more(cls: type[Algorithm]) -> bool:
    """Whether the method can have other models than `model_names`, by its settings, the data or the model."""
    return cls.offered is not Algorithm.offered


def describe_methods() -> dict[str, str]:
    """Each method's name, and one line with what it is and its source."""
    return {name: f"{cls.summary} ({cls.source})" for name, cls in ALGORITHMS.items()}


def model_names() -> frozenset[str]:
    """The names of models that any method has, whatever its settings."""
    return frozenset(name for cls in ALGORITHMS.values() for name in cls.model_names)
