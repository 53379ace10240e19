"""report.md, the page, figures, `--json` and report.json of a folder agree: in numbers, marks and axes."""

import json
import re

import pytest

from idiolect.cli.results import print_results
from idiolect.metrics.registry import METRICS
from idiolect.report import text
from idiolect.report.advice import write_advice
from idiolect.report.figures import curves_figure
from idiolect.report.html.payload import UNTESTED, number, payload_of
from idiolect.report.markdown import escaped, report_text
from idiolect.report.page import folders_dict, write_folder, write_report
from idiolect.report.raw import clients_csv, write_csv
from idiolect.report.sweeps import sweep_text
from idiolect.report.view.as_json import REPORT, read_view, to_dict
from idiolect.report.view.folder import view_of_folder
from idiolect.study.search.launch import SWEPT
from idiolect.study.store.store import Store
from idiolect.study.store.summary import over_seeds
from tests.report.html.made import compared
from tests.report.stores import experiment, finished, toy
from tests.report.test_sweeps import made, scored


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A comparison with three seeds, one method of which is far worse than the others."""
    folder = tmp_path_factory.mktemp("several")
    methods = [{"name": name, "label": name} for name in ("local", "fedavg", "ditto")]
    return folder, compared(folder, methods=methods)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A published table with a verdict, a run that diverged, and a method that was not run."""
    folder = tmp_path_factory.mktemp("table")
    results = toy(folder)
    results.store.set_fact("experiment", results.experiment.model_dump(mode="json"))
    results.store.set_fact("options", {"command": "idiolect run toy"})
    return folder, results


@pytest.fixture(scope="module", params=["several", "table", "csv"])
def written(request, tmp_path_factory, several, table):
    """(report.json's object, report.md, the page's data) of one folder."""
    if request.param == "csv":
        folder = tmp_path_factory.mktemp("csv")
        write_csv(table[1], folder / "table.csv")
        clients_csv(table[1], folder / "clients.csv")
        view = view_of_folder(folder)
        return to_dict(view), report_text_of(view), page_of([folder])
    folder, results = several if request.param == "several" else table
    write_report(results, folder, "idiolect run toy")
    page = json.loads(re.search(r'id="data">(.*?)</script>', (folder / "report.html").read_text(), re.DOTALL)[1])
    return json.loads((folder / REPORT).read_text()), (folder / "report.md").read_text(), page


def report_text_of(view):
    """The page in Markdown of a view without sentences on its metrics."""
    return report_text(view.__class__(**{**vars(view), "reading": ("what accuracy is", "one split")}))


def page_of(folders):
    """The page's data of folders."""
    return payload_of(folders_dict(folders))


def tables(markdown):
    """The tables of a page of Markdown, as lists of rows of cells."""
    blocks = re.findall(r"^\|.*?\n\|[-: |]+\|\n((?:\|.*\n)*)", markdown, re.MULTILINE)
    return [[[cell.strip() for cell in row.strip("|").split("|")] for row in block.splitlines()] for block in blocks]


def test_report_md_has_the_cells_and_the_marks_of_report_json(written):
    said, markdown, _ = written
    (cell,) = said["cells"]
    shown = [place for place, column in enumerate(cell["table"]["columns"]) if column["printed"]]
    once = {place for place, column in enumerate(cell["table"]["columns"]) if column["once"]}
    main, *others = tables(markdown)
    assert len(main) == len(cell["table"]["rows"]) > 0
    for row, line in zip(cell["table"]["rows"], main, strict=True):
        for place, told in zip(shown, line, strict=True):
            mark = "**" if row["cells"][place]["bold"] else ""
            own = "" if place in once and not row["first"] else row["cells"][place]["text"]
            assert told == f"{mark}{own}{mark}"
    assert [rows for rows in others if rows] == [
        [[escaped(one) for one in row] for row in small["rows"]] for small in cell["tables"]
    ]


def test_every_text_of_the_table_is_that_of_its_number_and_its_number_that_of_its_line(written):
    said, _, _ = written
    (cell,) = said["cells"]
    metric = METRICS[cell["metric"]]
    places = {column["title"]: place for place, column in enumerate(cell["table"]["columns"])}
    for row, line in zip(cell["table"]["rows"], cell["lines"], strict=True):
        for title, name in ((metric.column, "pooled"), ("client mean", "mean"), ("worst 10 %", "worst10")):
            told, over = row["cells"][places[title]], line[name]
            assert told["sort"] == over["mean"]
            if over["mean"] is not None:
                width = float("nan") if over["half_width"] is None else over["half_width"]
                assert told["text"] == text.with_width(metric.unit * over["mean"], metric.unit * width, metric)
        for title, value in (("difference", line["difference"]), ("verdict", line["verdict"])):
            assert title not in places or (row["cells"][places[title]]["sort"] is None) == (value is None)
            if title == "difference" and title in places and value is not None:
                assert row["cells"][places[title]]["sort"] == value


def test_the_page_has_the_numbers_the_marks_and_the_axes_of_report_json(written):
    said, markdown, page = written
    (cell,), (shown,) = said["cells"], page["cells"]
    columns = cell["table"]["columns"]
    untested = {place for place, column in enumerate(columns) if column["title"].startswith(UNTESTED)}
    places = [place for place, column in enumerate(columns) if column["page"] and place not in untested]
    for row, line in zip(cell["table"]["rows"], shown["shares"]["rows"], strict=True):
        assert line[2:] == [row["cells"][place]["text"] for place in sorted(untested)]
    for row, line in zip(cell["table"]["rows"], shown["table"]["rows"], strict=True):
        assert (row["best"], row["model"]) == (line["best"], line["model"])
        for place, told in zip(places, line["cells"], strict=True):
            own = row["cells"][place]
            assert (told["text"], told["bold"]) == (own["text"], own["bold"])
            assert told["sort"] == (own["sort"] if isinstance(own["sort"], str) else number(own["sort"]))
    assert [t["rows"] for t in shown["tables"]] == [t["rows"] for t in cell["tables"]]
    for key, scores in cell["clients"]["scores"].items():
        assert shown["clients"]["scores"][key] == [number(score) for score in scores]
        assert shown["clients"]["half"][key] == [number(half) for half in cell["clients"]["half"][key]]
    first = [text.bare(escaped(said[part])) for part in ("headline", "numbers")]
    assert markdown.startswith(f"# {said['title']}\n\n**{first[0]}**\n\n{first[1]}\n")
    for part in ("decision", "headline", "numbers", "chips"):
        assert page[part] == said[part]
        assert (page["cells"][0][part] == said[part]) or len(page["cells"]) > 1
    if cell["curves"] is None:
        assert shown["curves"] is None
        return
    for own, drawn in zip(cell["curves"]["quantities"], shown["curves"]["quantities"], strict=True):
        assert drawn["domain"] == [number(end) for end in own["domain"]]
        assert (drawn["stacks"], drawn["outside"]) == (own["stacks"], own["outside"])
        for one, line in zip(own["series"], drawn["series"], strict=True):
            assert line["mean"] == [number(value) for value in one["mean"]]


def test_the_figures_of_report_md_have_the_axes_of_report_json(several):
    folder, results = several
    write_report(results, folder, "")
    said, part = json.loads((folder / REPORT).read_text()), read_view(folder / REPORT).parts[0]
    figure, unit = curves_figure(part), part.metric.unit
    drawn = {each["kind"]: each for each in said["cells"][0]["curves"]["quantities"]}
    for axes, kind, by in zip(figure.axes, ("score", "loss"), (unit, 1), strict=True):
        assert axes.get_ylim() == pytest.approx([by * end for end in drawn[kind]["domain"]])
        for line, one in zip(axes.lines, drawn[kind]["series"], strict=False):
            assert line.get_ydata().tolist() == pytest.approx([by * value for value in one["mean"]])


def test_json_on_the_terminal_is_report_json(several, capsys):
    folder, results = several
    write_report(results, folder, "idiolect compare --data toy")
    print_results(results, True, folder)
    printed, said = json.loads(capsys.readouterr().out), json.loads((folder / REPORT).read_text())
    assert printed["cells"][0].pop("figures") == []  # a command does not look at files
    said["cells"][0].pop("figures")
    assert printed == said


def test_a_sweeps_page_and_report_md_have_the_numbers_of_report_json(tmp_path):
    swept = made(
        ("fedavg", {}, {"rate": 0.25}, scored(0.5, 0.75, chosen=True, test=over_seeds([0.25, 0.375]))),
        ("fedavg", {}, {"rate": 0.5}, scored(0.5, 0.5)),
    )
    store = Store(tmp_path)
    store.set_fact("experiment", swept.experiment.model_dump(mode="json"))
    store.set_fact("options", {"command": "idiolect sweep --data synthetic"})
    store.set_fact(SWEPT, [one.to_dict() for one in swept.tried])
    write_folder(tmp_path)
    said, page = json.loads((tmp_path / REPORT).read_text()), page_of([tmp_path])
    tried = said["cells"][0]["tables"][0]["rows"]
    assert page["cells"][0]["tables"][0]["rows"] == tried
    (printed,) = tables(sweep_text(swept))
    assert printed == tried
    runs = said["cells"][0]["sweep"]["runs"]
    assert [run["score"] for run in runs] == [one.validation.mean for one in swept.tried]
    assert [run["score"] for run in page["cells"][0]["sweep"]["runs"]] == [number(run["score"]) for run in runs]


def test_an_advices_page_has_the_table_of_its_markdown_and_of_report_json(advice, tmp_path):
    write_advice(advice, tmp_path)
    write_folder(tmp_path)
    said, shown = json.loads((tmp_path / REPORT).read_text()), page_of([tmp_path])
    printed = tables((tmp_path / "advice.md").read_text())[0]
    (cell,), (drawn,) = said["cells"], shown["cells"]
    assert printed == [[one["text"] for one in row["cells"]] for row in cell["table"]["rows"]]
    for row, line, own in zip(cell["table"]["rows"], drawn["table"]["rows"], advice.lines, strict=True):
        assert row["cells"][2]["sort"] == own.loss
        assert [one["text"] for one in line["cells"]] == [one["text"] for one in row["cells"]]
        assert line["cells"][2]["sort"] == number(own.loss)
    assert cell["clients"]["scores"]["used"] == [one.gap.mean for one in advice.decision.clients]
    assert drawn["clients"]["scores"]["used"] == [number(one.gap.mean) for one in advice.decision.clients]
    assert said["version"] == 2


def test_a_line_far_below_the_others_is_cut_alike(tmp_path):
    names = ("fedavg", "fedprox", "scaffold", "fedsgd")
    store, exp = Store(tmp_path), experiment([{"name": name} for name in names], seeds=1)
    store.set_fact("experiment", exp.model_dump(mode="json"))
    for name, level in zip(names, (0.9, 0.9, 0.904, 0.3), strict=True):
        scores = {r: {"global": (level + r / 1e5,) * 3 + (float("nan"),)} for r in (0, 10, 20)}
        finished(store, exp, "cell0", name, 0, scores, splits=("train", "test"))
    write_folder(tmp_path)
    view = read_view(tmp_path / REPORT)
    score, loss, _ = json.loads((tmp_path / REPORT).read_text())["cells"][0]["curves"]["quantities"]
    assert (score["outside"][0], loss["outside"][1]) == (
        {"side": "below", "wholly": ["m3"], "partly": []},
        {"side": "above", "wholly": ["m3"], "partly": []},
    )
    assert score["stacks"] == [["m0", "m1"]]
    figure = curves_figure(view.parts[0])
    assert "below the axis of test accuracy: FedSGD global" in " ".join(figure.told)
    assert [t.get_text() for t in figure.legends[0].get_texts()][-1] == "FedAvg global\nFedProx global"
    assert page_of([tmp_path])["cells"][0]["curves"]["quantities"][0]["outside"] == score["outside"]
