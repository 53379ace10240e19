"""The folders that the commands of hubs and sites take as arguments and options."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idiolect.cli.options import folder_path

if TYPE_CHECKING:
    from idiolect.deploy.nvflare.kits import Kit

HubFolder = Annotated[
    Path,
    typer.Argument(
        parser=folder_path, metavar="FOLDER", help="The hub's folder: its runs and reports.", show_default=False
    ),
]
HubKit = Annotated[Path, typer.Option("--kit", parser=folder_path, metavar="KIT", help="The hub's kit.")]
AdminKit = Annotated[
    Path, typer.Option("--admin", parser=folder_path, metavar="KIT", help="The kit of the person who submits jobs.")
]
Metrics = Annotated[
    int | None,
    typer.Option(
        "--metrics", min=1, max=65535, metavar="PORT", help="Serve metrics for Prometheus on 127.0.0.1 at this port."
    ),
]
KitFolder = Annotated[
    Path,
    typer.Argument(
        parser=folder_path, metavar="KIT", help="The site's kit: the folder with startup/ in it.", show_default=False
    ),
]
StudyId = Annotated[
    str, typer.Argument(metavar="STUDY", help="The study's id, as in 'site status'.", show_default=False)
]
UnitFile = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write the unit there (default: print it).", show_default=False),
]


def site_kit(folder: Path) -> "Kit":
    """A site's kit. Raises `StoreError` for a folder that is none, `ConfigError` for another participant's."""
    from idiolect.deploy.nvflare.kits import read_kit, require_kind

    kit = read_kit(folder)
    require_kind(kit, "client")
    return kit


def print_unit(unit: str, out: Path | None, as_json: bool) -> None:
    """Print a unit file, or write it to `out`. Raises `StoreError` if it cannot be written."""
    from idiolect.cli.terminal import print_outcome
    from idiolect.core.files import write_text

    if out is not None:
        write_text(out, unit, shared=True)
    shown = (
        unit.rstrip().splitlines() if out is None else [f"unit: {out}", "to check it: systemd-analyze verify FILE"]
    )
    print_outcome({"unit": unit, "file": None if out is None else str(out)}, shown, as_json)
