"""The notebooks as pages: their texts, their code, and what it printed when it was run.

`python -m docs.make.notebook docs/notebook-table.ipynb` runs a notebook from top to bottom and keeps what it prints.
"""

import ast
import io
import json
import os
import sys
from base64 import b64decode, b64encode
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1]
FILES = (FOLDER / "notebook.ipynb", FOLDER / "notebook-table.ipynb")


def cells(file: Path) -> list[dict[str, Any]]:
    """Return a notebook's cells, as its file has them."""
    return json.loads(file.read_text())["cells"]


def pages() -> dict[str, str]:
    """Return the page of each notebook, by path in the site."""
    return {f"{file.stem}.md": page(file) for file in FILES}


def page(file: Path) -> str:
    """Return a notebook in Markdown."""
    parts = [text for number, cell in enumerate(cells(file)) for text in _cell(file, number, cell)]
    about = f"*This page is [a notebook]({file.name}) that you can run. It needs no network.*"
    return "\n\n".join([parts[0], about, *parts[1:], ""])


def images() -> dict[str, bytes]:
    """Return the figures that the notebooks drew, by their paths in the site."""
    drawn: dict[str, bytes] = {}
    for file in FILES:
        for number, cell in enumerate(cells(file)):
            for output in cell.get("outputs", []):
                if png := output.get("data", {}).get("image/png"):
                    drawn[_image(file, number)] = b64decode("".join(png))
    return drawn


def _image(file: Path, number: int) -> str:
    return f"assets/{file.stem}-{number}.png"


def _cell(file: Path, number: int, cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"]).strip()
    if cell["cell_type"] == "markdown":
        return [source]
    outputs = (_output(file, number, output) for output in cell["outputs"])
    return [f"```python\n{source}\n```", *(one for one in outputs if one)]


def _output(file: Path, number: int, output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![What the cell above draws]({_image(file, number)})"
    text = "".join(output.get("text") or data.get("text/plain") or "").rstrip()
    return f"```text\n{text}\n```" if text else ""


def run(file: Path) -> None:
    """Run the code of a notebook in its folder, in order, and write what each cell prints into the file."""
    notebook = json.loads(file.read_text())
    os.chdir(file.parent)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells(file)):
        if cell["cell_type"] == "code":
            outputs = _outputs("".join(cell["source"]), names)
            notebook["cells"][number] |= {"outputs": outputs, "execution_count": None}
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def _outputs(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run one cell: what it prints, what it draws, and the value of its last line."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    body = ast.parse(source).body
    last = body[-1].value if isinstance(body[-1], ast.Expr) else None
    found: list[dict[str, Any]] = []
    plt.show = lambda *_, **__: None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body[:-1] if last else body, []), "notebook", "exec"), names)
        value = eval(compile(ast.Expression(last), "notebook", "eval"), names) if last else None
    if text := printed.getvalue():
        found.append(
            {"output_type": "stream", "name": "stdout", "text": [f"{line.rstrip()}\n" for line in text.splitlines()]}
        )
    for figure in map(plt.figure, plt.get_fignums()):
        image = io.BytesIO()
        figure.savefig(image, format="png")
        png = b64encode(image.getvalue()).decode()
        found.append({"output_type": "display_data", "metadata": {}, "data": {"image/png": png}})
    plt.close("all")
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        found.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    return found


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve())
