"""The notebook: its code runs from top to bottom, its file is small, and the site shows what it printed."""

import re
from pathlib import Path
from typing import Any

import pytest

from docs.make.notebook import FILE, cells, images, page


@pytest.mark.second
def test_its_code_runs_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer rounds and one division of the rows; every name that it prints is there."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(FILE.parent)
    monkeypatch.setattr(plt, "show", plt.close)
    names: dict[str, Any] = {}
    for cell in cells():
        if cell["cell_type"] == "code":
            code = re.sub(r"rounds=\d+", "rounds=2", "".join(cell["source"])).replace("idiolect.use_cores()", "pass")
            exec(compile(code.replace("range(3)", "range(1)"), "notebook", "exec"), names)
    assert set(names["table"].columns) == set(names["methods"])
    assert names["made"].table()["client"].unique().tolist() == ["Chinstrap Dream"]


def test_its_file_is_small_and_says_nothing_of_the_machine_it_ran_on() -> None:
    text = FILE.read_text()
    assert len(text) < 150_000
    assert str(Path.home()) not in text
    assert not re.search(r"/(?:home|work|tmp|Users)/", text)
    assert all(output["output_type"] != "error" for cell in cells() for output in cell.get("outputs", []))


def test_the_page_has_every_cell_and_what_it_printed() -> None:
    text = page()
    assert text.startswith("# Four colonies")
    assert text.count("```python") == sum(cell["cell_type"] == "code" for cell in cells())
    assert "```text" in text
    assert all(image.startswith(b"\x89PNG") and f"({uri})" in text for uri, image in images().items())
    assert images()
