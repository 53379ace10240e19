"""The command launch: another command in several processes."""

from typing import Annotated

import typer


def launch(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND ...", help="What each process runs.", show_default=False)
    ] = None,
    processes: Annotated[int, typer.Option("-n", "--processes", metavar="N", help="Processes on this machine.")] = 2,
) -> None:
    """Run a command in several processes that divide each cohort.

    Examples:
    idiolect launch -n 2 -- compare patients.csv --methods fedavg
    idiolect launch -n 4 -- run hospitals.toml -o hospitals

    Writes: what the command writes, once.
    """
    if not command:
        raise typer.BadParameter("name the command to run: idiolect launch -n 2 -- compare patients.csv")
    from idiolect.runtime.distributed import start  # here: it imports JAX, and --help must not wait for it

    code = start(processes, command)
    if code:
        raise typer.Exit(code)
