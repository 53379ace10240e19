"""Internal: the packaged experiment files: <paper>/<name>.toml, or <name>.<protocol>.toml."""

import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import get_args

from idiolect.core.errors import unknown
from idiolect.study.spec.experiment import Experiment, Protocol, experiment_of


def _all() -> dict[str, Traversable]:
    """Every packaged file by name, without .toml: demo, pfedme/table1.as-written, ..."""
    root = files("idiolect.experiments")
    by_name = {f.name.removesuffix(".toml"): f for f in root.iterdir() if f.name.endswith(".toml")}
    for folder in root.iterdir():
        if folder.is_dir():
            in_folder = (f for f in folder.iterdir() if f.name.endswith(".toml"))
            by_name |= {f"{folder.name}/{f.name.removesuffix('.toml')}": f for f in in_folder}
    return by_name


def packaged(name: str, protocol: str = "as-written") -> Experiment:
    """Load the experiment `name` for a protocol; a file without a protocol in its name is used for every protocol.

    Raises `ConfigError` for an unknown name or protocol, suggesting the nearest.
    """
    if protocol not in get_args(Protocol):
        raise unknown("protocol", protocol, get_args(Protocol))
    known = _all()
    file = known.get(f"{name}.{protocol}") or known.get(name)
    if file is None:
        if any(key.startswith(f"{name}.") for key in known):
            raise unknown(f"protocol of {name}", protocol, [k[len(name) + 1 :] for k in known if k.startswith(name)])
        raise unknown("experiment", name, {key.split(".")[0] for key in known})
    return experiment_of(tomllib.loads(file.read_text(encoding="utf-8")), name)


def names() -> dict[str, str]:
    """Each experiment's title by its name, followed by ' --protocol PROTOCOL' if it has protocols."""
    titles: dict[str, str] = {}
    for key in sorted(_all()):
        base, _, protocol = key.partition(".")
        title = tomllib.loads(_all()[key].read_text(encoding="utf-8")).get("title", "")
        titles[f"{base} --protocol {protocol}" if protocol else base] = title
    return titles
