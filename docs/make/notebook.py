"""The notebook as a page: its texts, its code, and what it printed when it was run."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "notebook.ipynb"


def cells() -> list[dict[str, Any]]:
    """The notebook's cells, as its file has them."""
    return json.loads(FILE.read_text())["cells"]


def page() -> str:
    """Markdown of the notebook."""
    parts = [text for number, cell in enumerate(cells()) for text in _cell(number, cell)]
    told = "*This page is [a notebook](notebook.ipynb) to run yourself; it needs no data but what lies beside it.*"
    return "\n\n".join([parts[0], told, *parts[1:], ""])


def images() -> dict[str, bytes]:
    """The figures that the notebook drew, by their paths in the site."""
    drawn: dict[str, bytes] = {}
    for number, cell in enumerate(cells()):
        for output in cell.get("outputs", []):
            if png := output.get("data", {}).get("image/png"):
                drawn[_image(number)] = b64decode("".join(png))
    return drawn


def _image(number: int) -> str:
    return f"assets/notebook-{number}.png"


def _cell(number: int, cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"]).strip()
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *(one for output in cell["outputs"] if (one := _output(number, output)))]


def _output(number: int, output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![What the cell above draws]({_image(number)})"
    text = "".join(output.get("text") or data.get("text/plain") or "").rstrip()
    return f"```text\n{text}\n```" if text else ""
