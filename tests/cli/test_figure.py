"""The command `figure`: files, captions, and every error in one line."""

import json

import pytest

from idiolect.cli.figure import Kind, inches
from idiolect.core.errors import ConfigError
from idiolect.report.kinds import KINDS
from tests.report import stores


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure") / "toy"
    results = stores.toy(folder)
    results.store.set_fact("experiment", results.experiment.model_dump(mode="json"))
    results.store.close()
    return folder


def test_every_kind_is_offered(commandline):
    assert [kind.value for kind in Kind] == [*KINDS, "all"]
    code, out, _ = commandline("figure", "--help")
    assert code == 0
    assert any(line.strip(" │").startswith("idiolect figure") for line in out.splitlines())
    assert all(kind in out for kind in KINDS)


def test_a_figure_and_its_caption(commandline, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = commandline("figure", str(run), "curves", "--style", "paper")
    assert (code, err) == (0, "")
    name, caption = out.splitlines()
    assert name == "toy-curves.pdf"
    assert caption.startswith(r"\caption{Test accuracy and training loss over rounds, cell0.")
    first = (tmp_path / name).read_bytes()
    assert commandline("figure", str(run), "curves", "--style", "paper")[0] == 0
    assert (tmp_path / name).read_bytes() == first  # over the old one, byte for byte


def test_all_that_a_run_can_give_as_json(commandline, run, tmp_path):
    code, out, err = commandline("figure", str(run), "all", "--format", "svg", "--out", str(tmp_path), "--json")
    assert (code, err) == (0, "")
    files = json.loads(out)["files"]
    assert [one["kind"] for one in files] == ["curves", "clients", "gain", "table"]
    names = ["toy-clients.svg", "toy-curves.svg", "toy-gain.svg", "toy-table.tex"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{run}", "curve"), "'curve' is not one of 'curves', 'clients', 'gain'"),
        (("{run}/no", "curves"), "no such run"),
        (("{run}", "curves", "--format", "gif"), "'gif' is not one of 'pdf', 'svg', 'png'"),
        (("{run}", "curves", "--out", "no/a.pdf"), "there is no folder 'no'"),
        (("{run}", "curves", "--out", "a"), "give it a suffix"),
        (("{run}", "curves", "--xmax", "-1"), "--xmax -1: a round is 0 or more"),
        (("{run}", "curves", "--xmax=-0.5"), "--xmax -0.5: a round is 0 or more"),
        (("{run}", "curves", "--out", "a.eps"), "'.eps' is no format"),
        (("{run}", "curves", "--out", "a.pdf", "--format", "svg"), "differ; leave one out"),
        (("{run}", "curves", "--out", "{run}"), "give it a suffix"),
        (("{run}", "table", "--out", "{run}"), "is a folder"),
        (("{run}", "all", "--out", "no"), "must be a folder"),
        (("{run}", "curves", "--cell", "cell1"), "unknown cell 'cell1'"),
        (("{run}", "curves", "--width", "wide"), "--width wide: write single, double"),
        (("{run}", "curves", "--xmax", "nan"), "must be a finite number"),
        (("{run}", "curves", "--ymin", "5", "--ymax", "4"), "must be below"),
        (("{run}", "times"), "has no published seconds"),
        (
            ("{run}", "graph"),
            "cell 'cell0' has no graph among clients; fedu and dfedu have one",
        ),
    ],
)
def test_errors_of_one_line_leave_nothing(commandline, run, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    code, out, err = commandline("figure", *(part.format(run=run) for part in arguments))
    assert (code in (1, 2), out, err.count("\n")) == (True, "", 1)
    assert said in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "width"), [("single", 3.25), ("double", 6.75), ("8.4cm", 8.4 / 2.54), ("84 mm", 8.4 / 2.54),
                        ("3.3in", 3.3), ("12", 12 / 2.54)]
)  # fmt: skip
def test_widths(text, width):
    assert inches(text) == pytest.approx(width)


@pytest.mark.parametrize("text", ["", "cm", "0", "-3in", "nan", "inf", "1e9cm", "3ft"])
def test_no_widths(text):
    with pytest.raises(ConfigError, match="--width"):
        inches(text)
