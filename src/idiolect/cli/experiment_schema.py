"""The JSON schema of experiment files, made from the definitions that read them, for an editor."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from idiolect.algorithms.registry import ALGORITHMS, build
from idiolect.cli.pages import PAGES
from idiolect.core.docstrings import explained, meanings, text_of
from idiolect.core.errors import ConfigError
from idiolect.core.settings import REQUIRED, Setting, json_schema, settings_of
from idiolect.data.divide.newcomers import hold_out
from idiolect.data.sets.registry import SOURCES
from idiolect.models.registry import MODELS, settings_of_model
from idiolect.study.spec.experiment import Cell, Experiment, Method
from idiolect.study.spec.published import Gap, Published

PACKAGED = Path(__file__).parents[1] / "experiments" / "schema.json"
"""The copy that comes with the package; `idiolect schema` prints the same, with methods of other packages."""
ONE_OF: dict[str, tuple[str, str]] = {
    "methods": ("method", "A method with its settings."),
    "data": ("data", "A data set of `idiolect list data`, by name or as a table with its settings."),
    "models": ("model", "A model of `idiolect list models`, by name or as a table with its settings."),
}
"""Kind of `idiolect list` -> its definition in the schema, and what it is."""


def experiment_schema() -> dict[str, Any]:
    """The schema (draft 7, which editors of TOML read)."""
    own = {"Cell": Cell, "Published": Published, "Gap": Gap}
    definitions = {name: of_model(model) for name, model in own.items()}
    defaults = {**definitions["Cell"], "description": "What every cell has that does not set it."}
    definitions["Defaults"] = {key: value for key, value in defaults.items() if key != "required"}
    required = [key for key in definitions["Cell"].pop("required") if key != "id"]
    definitions["Cell"]["required"] = ["id"]
    kinds = listed()
    for kind, (name, text) in ONE_OF.items():
        tables = [of_name(kind, one, kinds[kind]) for one in sorted(kinds[kind])]
        definitions |= {f"{name}.{one['title']}": one for one in tables}
        choices = [{"$ref": f"#/definitions/{name}.{one['title']}"} for one in tables]
        known = {"enum": [one["title"] for one in tables]}
        bare = [] if kind == "methods" else [known]
        # the names a second time, since an editor's message of "anyOf" does not say that the name is unknown
        definitions[name] = {"description": text, "properties": {"name": known}, "anyOf": [*bare, *choices]}
    whole = of_model(Experiment)
    whole["properties"]["defaults"] = {"$ref": "#/definitions/Defaults"}
    whole["required"] = ["cells"]  # the name is the file's where it is not set
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "An experiment of idiolect",
        **whole,
        # inside "then": editors do not complete the keys of a table that has "allOf" itself
        "if": True,
        "then": {"allOf": [_needed(key) for key in required]},
        "definitions": definitions,
    }


def text_of_schema() -> str:
    """The schema as a file has it."""
    return json.dumps(experiment_schema(), indent=1, ensure_ascii=False) + "\n"


def _needed(key: str) -> dict[str, Any]:
    """A field that every cell must have unless the defaults have it."""
    given = {"required": ["defaults"], "properties": {"defaults": {"required": [key]}}}
    return {"if": {"not": given}, "then": {"properties": {"cells": {"items": {"required": [key]}}}}}


def of_model(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a table that has the fields of a pydantic model."""
    said = explained(text_of(model), set(model.model_fields))[0]
    plain = model.model_json_schema(ref_template="#/definitions/{model}")["properties"]
    properties = {name: _described(_field(name, plain[name]), said.get(name, "")) for name in model.model_fields}
    return {
        "type": "object",
        "description": text_of(model).partition("\n\n")[0],
        "properties": properties,
        "required": [name for name, field in model.model_fields.items() if field.is_required()],
        "additionalProperties": False,
    }


def _field(name: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    """A field as pydantic describes it, without null and titles; some are tables by name."""
    if name in ("data", "model") and plain.get("type") == "object":
        return {"$ref": f"#/definitions/{name}"}
    if name == "methods":
        return {"type": "array", "items": {"$ref": "#/definitions/method"}, "minItems": 1}
    kinds = [kind for kind in plain.get("anyOf", [plain]) if kind.get("type") != "null"]
    found = {**plain, **kinds[0]} if len(kinds) == 1 else {**plain, "anyOf": kinds}
    if "ge" in found:  # pydantic leaves the bound of an optional number as it is
        found["minimum"] = found.pop("ge")
    large = [key for key, value in found.items() if isinstance(value, int | float) and abs(value) >= 2**31 - 1]
    left_out = {"title", *large, *(["anyOf"] if len(kinds) == 1 else [])}
    if plain.get("default") in (None, "", []):  # says no more than that the field can be left out
        left_out |= {"default"}
    return {key: value for key, value in found.items() if key not in left_out}


def listed() -> dict[str, dict[str, dict[str, Setting]]]:
    """Kind of `idiolect list` -> name -> its settings."""
    held_out = settings_of(hold_out, hidden=("data", "fitted"))
    further = {"held_out": held_out["held_out"]._replace(default=None), "held_out_seed": held_out["seed"]}
    return {
        "methods": {name: settings_of(cls) for name, cls in ALGORITHMS.items()},
        "data": {name: {**further, **settings_of(source)} for name, source in SOURCES.items()},
        "models": {name: settings_of_model(name) for name in MODELS},
    }


def of_name(kind: str, name: str, all_of_kind: Mapping[str, Mapping[str, Setting]]) -> dict[str, Any]:
    """The schema of the table of one method, data set or model: its settings, with default and bounds."""
    page, settings = PAGES[kind](name), all_of_kind[name]
    # the texts of data and models also name settings of others of the kind
    named = [settings] if kind == "methods" else all_of_kind.values()
    said = meanings(page.texts, {key for one in named for key in one})
    properties = {"name": {"const": name}}
    for key, setting in settings.items():
        found = json_schema(setting.annotation)
        if kind == "methods":
            found |= bounds(name, key, found)
        properties[key] = _described({**found, **_default(setting.default)}, said.get(key, ""))
    if kind == "methods":
        properties |= {key: one for key, one in of_model(Method)["properties"].items() if key != "name"}
    needed = [key for key, setting in settings.items() if setting.default is REQUIRED]
    return {
        "type": "object",
        "title": name,
        "description": page.texts[0].partition("\n\n")[0],
        "properties": properties,
        "required": ["name", *needed],
        "additionalProperties": False,
    }


_TRIED = {"integer": (-1, 0, 1, 2), "number": (-1.0, 0.0, 0.5, 1.0, 2.0)}


def bounds(name: str, key: str, kind: Mapping[str, Any]) -> dict[str, float]:
    """Find the bounds of a method's number, by the values that the method refuses whatever its other settings are."""
    if kind.get("type") not in _TRIED:
        return {}
    taken = [value for value in _TRIED[kind["type"]] if _takes(name, key, value)]
    if not taken:
        return {}
    least, most = taken[0], taken[-1]
    found: dict[str, float] = {}
    if least >= 0:
        found["exclusiveMinimum" if least == 0.5 else "minimum"] = 0 if least == 0.5 else least
    if most < 2:
        found["exclusiveMaximum" if most == 0.5 else "maximum"] = 1
    return found


def _takes(name: str, key: str, value: float) -> bool:
    """Whether a method takes a value with any choice of one of its other settings."""
    words = {one: get_args(setting.annotation) for one, setting in settings_of(ALGORITHMS[name]).items()}
    choices = [{}, *({one: word} for one in words for word in words[one] if one != key and isinstance(word, str))]
    return any(not _refused(name, key, {key: value, **choice}) for choice in choices)


def _refused(name: str, key: str, settings: Mapping[str, Any]) -> bool:
    try:
        build({"name": name, **settings})
    except ConfigError as error:
        return str(error).startswith(f"{name}: {key} = ")
    return False


def _default(value: Any) -> dict[str, Any]:
    """The default of a setting, where it has one that TOML can hold."""
    if value is None or value is REQUIRED or not isinstance(value, bool | int | float | str | list | tuple):
        return {}
    return {"default": [*value] if isinstance(value, tuple) else value}


def _described(schema: dict[str, Any], text: str) -> dict[str, Any]:
    """A schema with a description; draft 7 ignores other keys next to a reference."""
    if not text:
        return schema
    return {"description": text, **({"allOf": [schema]} if "$ref" in schema else schema)}
