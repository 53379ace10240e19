"""Unit files for systemd: a hub's study and a site as services that start with the machine and after a failure."""

import getpass
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from idiolect.core.errors import require

_UNIT = """\
[Unit]
Description={description}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
User={user}
ExecStart={command}
Restart=on-failure
RestartSec=10
SuccessExitStatus=130
KillMode={kill}
TimeoutStopSec=60
# The kernel may end a trainer that takes too much memory; the site starts another one.
OOMPolicy=continue
UMask=0077
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ReadWritePaths={writes}

[Install]
WantedBy=multi-user.target
"""


def hub_unit(folder: Path, kit: Path, admin: Path, user: str | None = None) -> str:
    """The unit that runs a hub's study to its end. user: by default the one who calls this.

    The engine's process, which several studies can share, continues when the service of one of them ends.
    """
    command = ["hub", "run", str(folder.absolute()), "--kit", str(kit.absolute()), "--admin", str(admin.absolute())]
    return _unit(f"idiolect hub {folder.name}", command, [folder, kit, admin], "process", user)


def site_unit(kit: Path, user: str | None = None) -> str:
    """The unit that runs a site. user: by default the one who calls this."""
    return _unit(f"idiolect site {kit.name}", ["site", "run", str(kit.absolute())], [kit], "mixed", user)


def _unit(description: str, arguments: Sequence[str], writes: Sequence[Path], kill: str, user: str | None) -> str:
    command = [sys.executable, "-m", "idiolect", *arguments]
    return _UNIT.format(
        description=re.sub(r"[^\w .@-]", "_", description),
        user=user or getpass.getuser(),
        command=" ".join([_quoted(command[0]), *(_quoted(word).replace("$", "$$") for word in command[1:])]),
        kill=kill,
        writes=" ".join(_quoted(str(path.absolute())) for path in writes),
    )


def _quoted(word: str) -> str:
    """A word as systemd reads it back. Raises `ConfigError` for one that no unit file can have."""
    require(word.isprintable(), f"{word!r} has a character that no unit file can have; rename the folder")
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{plain}"'
