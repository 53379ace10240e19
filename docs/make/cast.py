"""A picture of a terminal: `python -m docs.make.cast` runs `idiolect advise` on the tutorial's penguins.

It writes docs/figures/advise.svg, with the lines that the command prints, in light and dark.
"""

import fcntl
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "figures" / "advise.svg"
COMMAND = (
    "idiolect advise colonies.csv --client colony --label sex --methods ditto --splits 4 --rounds 20 --out advice"
)
LINES, WIDTH = 29, 130
ANSI = [
    (0, 0, 0),
    (176, 0, 32),
    (0, 110, 60),
    (140, 90, 0),
    (30, 80, 180),
    (130, 40, 140),
    (0, 110, 130),
    (90, 90, 90),
]
LIGHT = TerminalTheme((250, 250, 250), (30, 30, 30), ANSI)
DARK = TerminalTheme(
    (30, 33, 41),
    (225, 228, 235),
    [(min(red + 90, 255), min(green + 90, 255), min(blue + 90, 255)) for red, green, blue in ANSI],
)


def printed() -> str:
    """Run the command in a folder with the tutorial's tables; return the first lines that it prints."""
    with TemporaryDirectory() as folder:
        for name in ("penguins.csv", "colonies.py"):
            shutil.copy(ROOT / "docs" / "tutorial" / name, folder)
        subprocess.run([sys.executable, "colonies.py"], cwd=folder, check=True)
        words = [sys.executable, "-m", "idiolect", *shlex.split(COMMAND)[1:]]
        ours, theirs = pty.openpty()  # a terminal of this width, so that lines end where a reader's would
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, WIDTH, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LINES", "CI")}
        environment = {**kept, "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
        with subprocess.Popen(
            words, cwd=folder, env=environment, stdout=theirs, stderr=subprocess.DEVNULL
        ) as process:
            os.close(theirs)
            text = b"".join(_read(ours)).decode()
        assert process.returncode == 0, text
    return "\n".join(text.splitlines()[:LINES])


def _read(terminal: int) -> Iterator[bytes]:
    with suppress(OSError):  # at its end a terminal reports an error
        while part := os.read(terminal, 4096):
            yield part


def picture(text: str) -> str:
    """Return the SVG of a terminal that shows the command and its lines; its colours follow the reader's scheme."""
    light, dark = _drawn(text, LIGHT), _drawn(text, DARK)
    rules = re.findall(r"^\s*\.advise-r\d+ \{[^}]*\}", dark, flags=re.MULTILINE)
    rules += [f".advise-terminal {{ fill: {DARK.background_color.hex} }}"]
    rules += [f".advise-title {{ fill: {DARK.foreground_color.hex} }}"]
    colours = "\n".join(["@media (prefers-color-scheme: dark) {", *rules, "}"])
    terminal = f'fill="{LIGHT.background_color.hex}"'
    light = light.replace(terminal, f'class="advise-terminal" {terminal}', 1)
    return light.replace("</style>", f"{colours}\n</style>", 1)


def _drawn(text: str, theme: TerminalTheme) -> str:
    console = Console(record=True, width=WIDTH, file=StringIO())
    console.print(Text.assemble(("$ ", "green"), (COMMAND, "bold")), soft_wrap=True)
    console.print(Text.from_ansi(text), soft_wrap=True)
    svg = console.export_svg(title="idiolect advise", theme=theme, unique_id="advise")
    svg = re.sub(r"<!--.*?-->\s*", "", svg)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # fonts are the reader's own
    return svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")


if __name__ == "__main__":
    FILE.write_text(picture(printed()), encoding="utf-8")
