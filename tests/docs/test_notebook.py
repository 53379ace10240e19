"""The notebooks: their code runs from top to bottom, their files are small, and the site shows what they printed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.make import notebook
from docs.make.notebook import FILES, cells, images, page


@pytest.mark.second
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_code_runs_in_order(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer rounds and one division of the rows; every name that it prints is there."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(file.parent)
    monkeypatch.setattr(plt, "show", plt.close)
    names: dict[str, Any] = {}
    for cell in cells(file):
        if cell["cell_type"] == "code":
            code = re.sub(r"rounds=\d+", "rounds=2", "".join(cell["source"])).replace("idiolect.use_cores()", "pass")
            code = code.replace("range(3)", "range(1)").replace("seeds=3", "seeds=1")
            exec(compile(code, "notebook", "exec"), names)
    if file.stem == "notebook":
        assert set(names["table"].columns) == set(names["methods"])
        assert names["made"].table()["client"].unique().tolist() == ["Chinstrap Dream"]
    else:
        assert names["each"].index.tolist() == ["Biscoe", "Dream", "Torgersen"]
        assert names["each"]["samples"].tolist() == names["data"].test.sizes.tolist()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_file_is_small_and_says_nothing_of_the_machine_it_ran_on(file: Path) -> None:
    text = file.read_text()
    assert len(text) < 150_000
    assert str(Path.home()) not in text
    assert not re.search(r"/(?:home|work|tmp|Users)/", text)
    assert all(output["output_type"] != "error" for cell in cells(file) for output in cell.get("outputs", []))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_page_has_every_cell_and_what_it_printed(file: Path) -> None:
    text = page(file)
    assert text.startswith("# ")
    assert text.count("```python") == sum(cell["cell_type"] == "code" for cell in cells(file))
    assert "```text" in text
    drawn = {uri: image for uri, image in images().items() if re.fullmatch(rf"assets/{file.stem}-\d+\.png", uri)}
    assert all(image.startswith(b"\x89PNG") and f"({uri})" in text for uri, image in drawn.items())
    assert bool(drawn) == ("plt.show" in text)


def test_a_notebook_keeps_what_its_cells_print_draw_and_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = "import matplotlib.pyplot as plt\nprint('a')\nplt.plot([1, 2])\nplt.show()\n6 * 7"
    file = tmp_path / "one.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [source]}]}))
    notebook.run(file)
    (cell,) = cells(file)
    kinds = [output["output_type"] for output in cell["outputs"]]
    assert kinds == ["stream", "display_data", "execute_result"]
    assert cell["outputs"][2]["data"] == {"text/plain": ["42"]}
