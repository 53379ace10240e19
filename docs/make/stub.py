"""What type checkers are told of the package: `python -m docs.make.stub` writes src/idiolect/__init__.pyi."""

from pathlib import Path

import idiolect
from idiolect.algorithms.registry import OWN

FILE = Path(__file__).parents[2] / "src" / "idiolect" / "__init__.pyi"


def stub() -> str:
    """The text of the file: an import of each public name, and the list of them."""
    homes = {name: home for home, names in idiolect.HOMES.items() for name in names.split()}
    homes |= {cls.__name__: cls.__module__ for cls in OWN.values()}
    lines = [f"from idiolect import {name} as {name}" for name in idiolect.PACKAGES]
    by_home = sorted((home, name) for name, home in homes.items())
    lines += [f"from {home} import {name} as {name}" for home, name in by_home]
    lines += [
        "",
        "__version__: str",
        "HOMES: dict[str, str]",
        "PACKAGES: tuple[str, ...]",
        "EXTRA: tuple[str, ...]",
        "",
    ]
    # In the order that ruff keeps: constants, classes, functions.
    names = {*idiolect.PACKAGES, *homes} - {*idiolect.EXTRA}
    public = sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    lines += ["__all__ = [", *(f'    "{name}",' for name in public), "]", ""]
    return "\n".join(["# Written by python -m docs.make.stub.", *lines])


if __name__ == "__main__":
    FILE.write_text(stub())
