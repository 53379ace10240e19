"""The fields of an experiment file, and the rule of verdicts, from the code that reads and applies them."""

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from docs.make import notation
from idiolect.core.docstrings import explained, text_of
from idiolect.study.analyse.outcomes import RULE
from idiolect.study.spec.experiment import Cell, Experiment, Method
from idiolect.study.spec.published import Gap, Published

ROOT = Path(__file__).parents[2]
TABLES: dict[str, type[BaseModel]] = {
    "experiment": Experiment,
    "cell": Cell,
    "method": Method,
    "published": Published,
    "gap": Gap,
}
"""Each table of the file, by the word that its place on the page has: `<!-- fields: cell -->`."""


def filled(markdown: str) -> str:
    """The page with a table of fields in each place."""
    for word, model in TABLES.items():
        markdown = markdown.replace(f"<!-- fields: {word} -->", table(model))
    return markdown


def words(model: type[BaseModel]) -> dict[str, str]:
    """What the docstring says of each field."""
    return explained(text_of(model), set(model.model_fields))[0]


def table(model: type[BaseModel]) -> str:
    """Name, type, default and meaning of each field."""
    said = words(model)
    rows = [
        f"| `{name}` | {_kind(one.annotation, one.metadata)} | {_default(one)} | {notation.inline(said[name])} |"
        for name, one in model.model_fields.items()
    ]
    return "\n".join(["| field | holds | default | |", "|---|---|---|---|", *rows])


def with_rule(markdown: str) -> str:
    """The page of verdicts with the rule as reports print it."""
    return markdown.replace("<!-- rule -->", RULE)


def _kind(annotation: Any, bounds: list[Any]) -> str:
    text = str(annotation if not isinstance(annotation, type) else annotation.__name__)
    if "Literal" in text:
        choices = ", ".join(f"`{one}`" for one in _literals(annotation))
        return f"several of {choices}" if text.startswith("tuple") else choices
    plain = {"int": "a whole number", "float": "a number", "str": "text", "bool": "`true` or `false`"}
    kind = next(
        (word for key, word in plain.items() if re.match(rf"(?:\w+\.)*(?:Annotated\[|Optional\[)*{key}\b", text)), ""
    )
    kind = kind or ("tables" if any(one in text for one in ("Method", "Cell", "Published", "Gap")) else "")
    kind = kind or (
        "a name, or a table" if text.startswith("dict") else "names" if "tuple[str" in text else "a number"
    )
    limits = [
        f"{sign} {getattr(bound, key):,}"
        for bound in bounds
        for key, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"))
        if getattr(bound, key, None) is not None
    ]
    return f"{kind}{', ' if limits else ''}{', '.join(limits)}"


def _literals(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(one) for one in get_args(annotation)]
    return [one for inner in get_args(annotation) for one in _literals(inner)]


def _default(field: Any) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "the file's name" if field is Experiment.model_fields["name"] else "required"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"`{list(value)}`".replace("'", '"')
    return f"`{value}`" if value != "" else ""
