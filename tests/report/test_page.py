import json
import re

import pytest

from idiolect.core.errors import StoreError
from idiolect.report.page import folders_page, stems, write_folder, write_report
from idiolect.report.view.from_store import CHOSEN
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.html.made import compared
from tests.report.stores import PROVENANCE, TRAINED, experiment, finished, local, start

COMMAND = "idiolect compare --data toy"


@pytest.fixture(scope="module")
def written(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "deep" / "er"
    return folder, write_report(toy, folder, COMMAND)


def test_files(written):
    folder, paths = written
    figures = [f"figures/cell0-{kind}.{end}" for kind in ("curves", "clients") for end in ("png", "svg")]
    names = ["report.md", "table.csv", "clients.csv", *figures, "report.json", "report.html"]
    assert [str(p.relative_to(folder)) for p in paths] == names
    assert sorted(p for p in folder.rglob("*") if p.is_file()) == sorted(paths)


def test_page(written, toy):
    folder, _ = written
    page = (folder / "report.md").read_text()
    assert page.startswith("# A toy\n")
    for part in (
        "- protocol: as-written",
        f"- made by: `{COMMAND}`",
        "- seeds: 0, 1",
        "**1 published value: 0 agree, 1 is close, 0 differ.**",
        CHOSEN["last"],
        "> - the toy data leak on purpose",
        "| fedavg | global | 72.50 | 70.00 ± 0.50 | +2.50 | close |",
        "| pfedme | personal | not run |",
        "## Runs that diverged\n\n- cell0/fedavg/seed1: round 7, client south: the loss is NaN",
        "- git commit: 0123456789ab\n- Python: 3.11.7",
        "- fedavg (rate = 0.02, local_steps = 20,",
        "- 20 rounds, all clients a round, evaluated every 10 rounds",
    ):
        assert part in page
    for path in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (folder / path).is_file()
    assert page.count("](figures/") == page.count(".png)") == 2
    assert str(folder) not in page


def test_every_cell_note_and_selection(tmp_path):
    store = Store(tmp_path / "store")
    cells = [
        {"title": "one | first", "data": {"name": "mnist", "folder": "/home/someone/data"}},
        {"id": "b/2", "data": {"name": "table", "path": "/home/someone/hospital.csv"}, "select": "best-test"},
        {"id": "b 2"},
    ]
    exp = experiment(
        [{"name": "fedavg"}, {"name": "local"}],
        seeds=1,
        cells=cells,
        protocol="as-published",
        source="A paper, Table 1",
        description="What was done.",
    )
    for cell in ("cell0", "b/2"):
        finished(store, exp, cell, "fedavg", 0, TRAINED, provenance={"notes": [f"note of {cell}"]})
    store.set_fact("audit d", ["5 test samples are in training data."])
    start(store, exp, "cell0", "local", 0)
    out = tmp_path / "out"
    write_report(Results(store, exp), out, COMMAND)
    page = (out / "report.md").read_text()
    for part in ("## one \\| first", "## b/2", "## b 2", "> - note of cell0", "> - note of b/2"):
        assert part in page
    for part in ("What was done.", "source: A paper, Table 1", CHOSEN["last"], CHOSEN["best-test"], "hospital.csv"):
        assert part in page
    assert page.count("> - 5 test samples are in training data.") == 2
    assert "BEST ROUND ON TEST DATA (as published; optimistic)" in page
    assert "## Runs that are not finished\n\n- cell0/local/seed0: 0 rounds done" in page
    assert "someone" not in page
    # The third cell has no finished run, hence no figure.
    assert sorted(p.name for p in (out / "figures").glob("*.png")) == [
        *("b-2-clients.png", "b-2-curves.png", "cell0-clients.png", "cell0-curves.png")
    ]


def test_diagnostics_when_last_evaluated(written, said, tmp_path):
    folder, _ = written
    assert "iagnostic" not in (folder / "report.md").read_text()
    paths = write_report(said, tmp_path / "out", COMMAND)
    assert tmp_path / "out" / "diagnostics.csv" in paths
    first, second = paths[0].read_text().split("## cell1")
    assert (
        "**Diagnostics, when last evaluated**\n\n"
        "| method | seed | diagnostic | round | value |\n|---|---|---|---|---|\n"
        "| mine | 0 | dual objective | 20 | -1.235e+04 |\n"
        "| mine | 0 | duality gap | 20 | 0.3333 |\n"
        "| mine | 1 | duality gap | 0 | — |\n\n"
    ) in first
    assert "| mine | 0 | steps | 0 | 7 |\n" in second
    assert "`diagnostics.csv` has every evaluated round's diagnostics." in second


def test_names_of_figures():
    cells = experiment([{"name": "local"}], cells=[{"id": i} for i in ("b/2", "b 2", "B 2", "../x", "..")]).cells
    assert stems([cell.id for cell in cells]) == ["b-2", "b-2-2", "B-2-3", "x", "cell"]


def test_nothing_run(tmp_path):
    results = Results(Store(tmp_path / "store"), experiment([{"name": "fedavg"}]))
    paths = write_report(results, tmp_path / "out", "")
    page = paths[0].read_text()
    assert "| fedavg | global | not run |" in page
    assert "- nothing was run yet" in page
    assert "![" not in page
    assert "made by" not in page


def test_written_again_the_same(written, toy):
    folder, paths = written
    before = {p: p.read_bytes() for p in paths}
    assert write_report(toy, folder, COMMAND) == paths
    assert {p: p.read_bytes() for p in paths} == before


def test_a_file_in_the_way(toy, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(StoreError, match="cannot write to"):
        write_report(toy, tmp_path / "out", COMMAND)


def test_a_run_that_was_done_again(toy, tmp_path):
    store = Store(tmp_path)
    exp = experiment([{"name": "local"}], seeds=1)
    finished(store, exp, "cell0", "local", 0, local(0), provenance={"time": PROVENANCE["time"]})
    assert "date: 2026-01-02" in write_report(Results(store, exp), tmp_path / "out", COMMAND)[0].read_text()


def test_beside_the_runs_or_where_it_is_said(tmp_path):
    compared(tmp_path / "runs")
    path = write_folder(tmp_path / "runs")
    assert path == tmp_path / "runs" / "report.html"
    assert (tmp_path / "runs" / "report.json").is_file()
    own = path.read_bytes()
    assert folders_page([tmp_path / "runs"]) == path
    assert path.read_bytes() == own
    assert folders_page([tmp_path / "runs"], tmp_path / "page.html").read_bytes() == own
    with pytest.raises(StoreError, match="there is no folder"):
        folders_page([tmp_path / "runs"], tmp_path / "no" / "page.html")


def test_a_page_that_is_written_again_is_that_of_report_json(tmp_path):
    """Also of the figures that are there; a page elsewhere leaves report.json alone."""
    folder = tmp_path / "runs"
    results = compared(folder)
    write_report(results, folder, COMMAND)
    said, page = ((folder / name).read_bytes() for name in ("report.json", "report.html"))
    assert b"figures/cell0-curves.png" in said
    results.store.set_fact("audit d", ["Known leak: it was found later."])
    folders_page([folder], tmp_path / "page.html")
    assert (folder / "report.json").read_bytes() == said
    folders_page([folder])
    assert (folder / "report.html").read_bytes() != page
    leaks = json.loads((folder / "report.json").read_text())["leaks"]
    assert leaks == [{"text": "Known leak: it was found later.", "severe": True}]
    assert b"figures/cell0-curves.png" in (folder / "report.json").read_bytes()
