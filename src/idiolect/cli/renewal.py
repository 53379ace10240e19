"""Renewing a certificate: what the commands 'hub renew' and 'site renew' have in common."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idiolect.cli.options import check_output, file_path
from idiolect.cli.terminal import print_outcome
from idiolect.core.errors import require
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.deploy.nvflare.kits import Kind

RequestFile = Annotated[
    Path | None, typer.Option("--request", parser=file_path, metavar="FILE", help="Write the request here.")
]
InstallFile = Annotated[
    Path | None, typer.Option("--install", parser=file_path, metavar="FILE", help="The new certificate.")
]


def renewed(
    folder: Path, request: Path | None, certificate: Path | None, kinds: "Sequence[Kind]", as_json: bool
) -> None:
    """Write a request for a kit's new certificate, or put the certificate into the kit.

    Raises `ConfigError` unless exactly one of both is named, or if the kit is of another kind.
    """
    with loading():
        from idiolect.deploy.nvflare.kits import read_kit, require_kind
        from idiolect.deploy.nvflare.renewal import install, write_request
    require((request is None) != (certificate is None), "name either --request FILE or --install FILE")
    kit = read_kit(folder)
    require_kind(kit, *kinds)
    if request is not None:
        check_output(request, *(path for path in (kit.folder / "startup").iterdir()), option="--request")
        write_request(kit, request)
        lines = [
            f"request of '{kit.name}': {request}; it holds no key",
            f"the holder of the root key signs it: idiolect hub sign {shlex.quote(str(request))} --ca DIR -o FILE",
        ]
        print_outcome({"name": kit.name, "request": str(request)}, lines, as_json)
    elif certificate is not None:
        until = install(kit, certificate).not_after
        lines = [
            f"the certificate of '{kit.name}' is valid until {until:%Y-%m-%d}; it is used from the next start on"
        ]
        print_outcome({"name": kit.name, "expires": until.isoformat()}, lines, as_json)
