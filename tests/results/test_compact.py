"""The folders under results/ are small: nothing that the CSV files can draw is stored, and nothing twice."""

import gzip

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from idiolect.core.files import unpacked
from results import compact
from tests.results.test_pages import LINK

FOLDERS = compact.folders()


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder as `idiolect reproduce` writes it, in a results/ of its own."""
    monkeypatch.setattr(compact, "HERE", tmp_path / "results")
    monkeypatch.setattr(compact, "LARGE", 300)
    folder = tmp_path / "results" / "paper" / "table1"
    (folder / "figures").mkdir(parents=True)
    (folder / "table.csv").write_text("cell,method,model\none/a,local,local\ntwo,local,local\n")
    rows = "".join(f"one/a,local,local,{seed},{0.1 * seed!r}\n" for seed in range(40))
    (folder / "clients.csv").write_text("cell,method,model,seed,accuracy\n" + rows)
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    for stem in ("one-a", "two"):
        for kind in ("curves", "clients"):
            Image.fromarray(noise).save(folder / "figures" / f"{stem}-{kind}.png")
            (folder / "figures" / f"{stem}-{kind}.svg").write_text("<svg></svg>")
    (folder / "report.md").write_text(
        "# A table\n\n## One: 1\n\n![One: 1: test score and training loss over rounds](figures/one-a-curves.png)\n\n"
        "![One: 1: test score of every client](figures/one-a-clients.png)\n\n"
        "## Two\n\n![Two: test score of every client](figures/two-clients.png)\n\n"
        "`table.csv` has every number unrounded, `clients.csv` every client's.\n"
    )
    return folder


def contents(folder):
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(("limit", "colours"), [(10**6, 256), (1000, 64)])
def test_a_large_picture_has_fewer_colours(made, monkeypatch, limit, colours):
    monkeypatch.setattr(compact, "PICTURE", limit)
    for _ in range(2):
        compact.compact(made, [])
        with Image.open(made / "figures" / "one-a-curves.png") as image:
            assert colours // 2 < len(image.getcolors(256)) <= colours


def test_a_folder_keeps_what_its_csv_files_cannot_draw(made):
    before = (made / "clients.csv").read_bytes()
    large = (made / "figures" / "one-a-curves.png").stat().st_size
    compact.compact(made, [])
    files = contents(made)
    assert set(files) == {
        *("clients.csv.gz", "report.md", "table.csv", "figures/one-a-curves.png", "figures/two-curves.png"),
    }
    assert gzip.decompress(files["clients.csv.gz"]) == before
    assert len(files["figures/one-a-curves.png"]) < large
    text = files["report.md"].decode()
    assert "![One: 1: test score and training loss over rounds](figures/one-a-curves.png)" in text
    assert "-clients.png" not in text
    assert (
        "Every client's test score is in [clients.csv.gz](clients.csv.gz); this command draws it: "
        "`idiolect figure results/paper/table1 clients --cell one/a --format svg`\n" in text
    )
    assert "clients --cell two --format svg`\n" in text
    assert text.endswith("`table.csv` has every number unrounded, `clients.csv.gz` every client's.\n")


def test_a_report_as_data_is_compressed_where_it_is_long(made):
    for text, name in (("x" * compact.NOT_READ, "report.json"), ("x" * (compact.NOT_READ + 1), "report.json.gz")):
        (made / "report.json").write_text(text)
        compact.compact(made, [])
        assert [file.name for file in made.glob("report.json*")] == [name]
    assert unpacked(made / "report.json.gz") == text


def test_a_second_time_changes_nothing(made):
    compact.compact(made, [])
    files = contents(made)
    compact.compact(made, [])
    assert contents(made) == files


def test_a_picture_that_a_first_page_shows_stays(made):
    page = made.parent / "README.md"
    page.write_text("![Clients](table1/figures/two-clients.png)\n")
    compact.compact(made, compact.shown())
    assert [file.name for file in sorted((made / "figures").glob("*clients*"))] == ["two-clients.png"]
    assert "![Two: test score of every client](figures/two-clients.png)" in (made / "report.md").read_text()


def test_a_small_clients_file_and_the_only_cell_need_no_more(made, monkeypatch):
    monkeypatch.setattr(compact, "LARGE", 10_000)
    (made / "table.csv").write_text("cell,method,model\ntwo,local,local\n")
    (made / "report.md").write_text("![Two: test score of every client](figures/two-clients.png)\n")
    compact.compact(made, [])
    assert (made / "clients.csv").is_file()
    assert "[clients.csv](clients.csv)" in (made / "report.md").read_text()
    assert "`idiolect figure results/paper/table1 clients --format svg`" in (made / "report.md").read_text()


def test_a_file_that_is_compressed_later_has_its_name_in_the_report(made, monkeypatch):
    text, sizes = (made / "report.md").read_text(), (10_000, 300)
    for size in sizes:
        monkeypatch.setattr(compact, "LARGE", size)
        compact.compact(made, [])
    late = contents(made)
    (made / "report.md").write_text(text)
    compact.compact(made, [])
    assert contents(made) == late
    assert b"[clients.csv](clients.csv)" not in late["report.md"]


def test_all_folders_together_are_within_the_budget():
    assert compact.size() <= compact.BUDGET, f"{compact.size() / 1e6:.1f} MB; run: python -m results"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_a_folder_is_small_and_its_report_complete(folder):
    """`python -m results` would change nothing, and every picture and link of report.md is there."""
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert compact.with_commands(text, folder) == text
    assert [
        link for link in LINK.findall(text) if ":" not in link and not (folder / link.split("#")[0]).exists()
    ] == []
    assert not (folder / "clients.csv").is_file() or (folder / "clients.csv").stat().st_size <= compact.LARGE
    assert not ((folder / "clients.csv").is_file() and (folder / "clients.csv.gz").is_file())
    for picture in (folder / "figures").glob("*"):
        with Image.open(picture) as image:
            assert image.mode == "P", picture


def test_pandas_reads_a_compressed_file_as_it_is():
    file = next(folder / "clients.csv.gz" for folder in FOLDERS if (folder / "clients.csv.gz").is_file())
    assert {"cell", "method", "model", "seed", "round", "client", "n", "loss"} <= set(
        pd.read_csv(file, nrows=3).columns
    )


def test_folders_are_found():
    assert len(FOLDERS) == 86
