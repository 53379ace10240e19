import json
import shutil
import sys
from io import StringIO
from pathlib import Path

import pytest
import typer

from idiolect.cli import pages, results, terminal
from idiolect.cli.pages import REQUIRED, Page
from idiolect.report.view.as_json import to_dict
from idiolect.report.view.from_store import view_of
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report import stores


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return stores.toy(tmp_path_factory.mktemp("toy"))


def shown(capsys, function, *arguments):
    function(*arguments)
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


class Screen(StringIO):
    def isatty(self):
        return True


def test_a_console_is_as_wide_as_the_terminal_or_200_columns(monkeypatch):
    for name, value in {"COLUMNS": "77", "LINES": "30", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", StringIO())
    assert terminal.console().width == 200
    monkeypatch.setattr(sys, "stdout", Screen())
    assert terminal.console().width == 77


def test_json_is_one_indented_document(capsys):
    value = {"a": [1, None], "b": "ü"}
    out = shown(capsys, terminal.print_json, value)
    assert json.loads(out) == value
    assert out.startswith('{\n  "a": [\n    1,')
    assert out.endswith("}\n")


def test_entries_are_lines_of_a_name_and_what_is_said_of_it(capsys):
    out = shown(capsys, terminal.print_entries, {"fedavg": "the mean [of all]", "local": "alone"})
    assert [line.strip().split(maxsplit=1) for line in out.splitlines()] == [
        ["fedavg", "the mean [of all]"],
        ["local", "alone"],
    ]


def page_lines(capsys, kind, name, settings):
    out = shown(capsys, pages.print_page, kind, name, Page(("What [it] is.",), settings), False)
    text, _, rest = out.partition("\n")
    assert text == "What [it] is."
    assert rest == "" or rest.startswith("\n")
    return [" ".join(line.split()) for line in rest.splitlines() if line.strip()]


def test_a_page_without_settings_is_its_text(capsys):
    assert page_lines(capsys, "experiments", "x", {}) == []


def test_a_page_has_its_settings_as_they_are_typed_and_says_how_to_set_one(capsys):
    settings = {"path": REQUIRED, "cap": None, "hidden": [100, 50], "init": "he", "deep": True}
    hint = "set one with, for example: --set "
    assert page_lines(capsys, "methods", "fedper", settings) == [
        "setting default",
        "path (required)",
        "cap —",
        "hidden [100, 50]",
        "init he",
        "deep true",
        f"{hint}fedper.hidden=[100, 50]",
    ]
    for kind, prefix in {"data": "data", "models": "model", "methods": "x"}.items():
        assert page_lines(capsys, kind, "x", {"rate": 0.5})[-1] == f"{hint}{prefix}.rate=0.5"
    assert page_lines(capsys, "data", "x", {"cap": None, "path": REQUIRED})[-1] == f"{hint}data.cap=—"


def test_a_long_text_is_not_broken(capsys):
    text = "word " * 100 + "end"
    assert text in shown(capsys, pages.print_page, "models", "x", Page((text,), {}), False)


def test_a_page_as_json_is_its_name_text_and_settings(capsys):
    out = shown(capsys, pages.print_page, "models", "mlp", Page(("text",), {"hidden": [100], "cap": None}), True)
    assert json.loads(out) == {"name": "mlp", "text": "text", "settings": {"hidden": [100], "cap": None}}


def test_results_as_json_are_that_alone(toy, capsys):
    assert json.loads(shown(capsys, results.print_results, toy, True, toy.store.folder)) == to_dict(view_of(toy))


def test_several_comparisons_end_in_one_paragraph_each_with_what_is_known(tmp_path, capsys):
    """A single comparison has its headline above its table only."""
    cells = [{"note": "Made data."}, {"title": "the other"}]
    for number in (2, 1):
        store, spec = Store(tmp_path / str(number)), stores.experiment([{"name": "local"}], cells=cells[:number])
        for cell in spec.cells:
            for seed in (0, 1):
                stores.finished(store, spec, cell.id, "local", seed, {20: {"local": (0.7, 0.7, 0.75, stores.NAN)}})
        out = shown(capsys, results.print_results, Results(store, spec), False, tmp_path)
        assert (": Nothing to compare: only Local was run. Made data." in out) is (number == 2)
        assert ("the other: Nothing to compare: only Local was run." in out) is (number == 2)


def test_results_are_a_table_its_notes_the_verdicts_and_what_diverged(toy, capsys):
    toy.store.set_fact("audit d", ["two clients share a sample"])
    lines = shown(capsys, results.print_results, toy, False, toy.store.folder).splitlines()
    assert any(line.split()[:3] == ["fedavg", "global", "72.50"] for line in lines)
    assert lines[-4:] == [
        "note: the toy data leak on purpose",
        "note: two clients share a sample",
        "1 published value: 0 agree, 1 is close, 0 differ.",
        "cell0/fedavg/seed1: round 7, client south: the loss is NaN",
    ]


def test_small_tables_are_beside_the_main_one(tmp_path, capsys):
    out = shown(capsys, results.print_results, stores.timed(tmp_path), False, tmp_path)
    assert "Seconds per round, without compiling" in out
    assert "note: the toy data leak on purpose" in out
    assert "published value" not in out


@pytest.mark.parametrize(("runs", "told"), [(1, ""), (4, ""), (5, " and 1 more"), (7, " and 3 more")])
def test_unfinished_runs_are_named_with_the_command_that_goes_on(tmp_path, capsys, runs, told):
    store, spec = Store(tmp_path / "my out"), stores.experiment([{"name": "local"}], seeds=runs)
    for seed in range(runs):
        stores.record(store, stores.start(store, spec, "cell0", "local", seed), 10 + seed, stores.local(0)[0])
    out = shown(capsys, results.print_results, Results(store, spec), False, store.folder)
    names = ", ".join(f"cell0/local/seed{seed} at round {10 + seed}" for seed in range(min(runs, 4)))
    assert f"not finished: {names}{told}; resume with: idiolect resume '{store.folder}'\n" in out


def test_the_places_of_what_was_written_are_told_where_they_are(toy, tmp_path, capsys):
    report, models = f"report, figures, CSV: {tmp_path / 'report.md'}", f"client models: {tmp_path / 'models'}"
    last = []
    for make in (Path.touch, Path.mkdir, shutil.rmtree):
        make(tmp_path / ("report.md" if make is Path.touch else "models"))
        last.append(shown(capsys, results.print_results, toy, False, tmp_path).splitlines()[-1])
    assert last == [report, f"{report}   {models}", report]


def test_a_folder_is_quoted_where_it_must_be():
    assert terminal.resume_command(Path("runs/a")) == "idiolect resume runs/a"
    assert terminal.resume_command(Path("my runs/a$b")) == "idiolect resume 'my runs/a$b'"


def refused(*arguments):
    """What typer raises for a command that cannot be read."""
    app = typer.Typer()
    app.command("run")(lambda rounds: None)
    app.command("show")(lambda: None)
    with pytest.raises(terminal.UsageError) as caught:
        app(arguments, prog_name="idiolect", standalone_mode=False)
    return caught.value


def test_a_command_that_cannot_be_read_ends_with_code_2_and_says_where_help_is():
    assert terminal.unreadable(typer.BadParameter("it is so.")) == (
        "error: it is so; see: idiolect --help",
        2,
    )
    message, code = terminal.unreadable(refused("run"))
    assert message.startswith("error: Missing argument '")
    assert message.endswith("'; see: idiolect run --help")
    assert code == 2
    assert terminal.unreadable(refused("rnu"))[0].endswith("; see: idiolect --help")


def test_a_failure_is_one_plain_line_on_standard_error(capsys):
    with pytest.raises(SystemExit) as ended:
        terminal.fail("error: [red]a\nlong" + " word" * 100, 3)
    assert ended.value.code == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "error: [red]a long" + " word" * 100 + "\n"
