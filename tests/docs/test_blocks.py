"""Every block of code and every command of the pages: run, or at least begun, or with a word why not."""

import ast
import importlib.util
import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from idiolect.cli.main import app
from tests.docs.blocks import LANGUAGES, PAGES, ROOT, Block, blocks, commands, name_of
from tests.docs.given import names_of, put_files
from tests.tiers import second

# Pages whose commands train, with fewer rounds than they say; of the others all is checked up to the training, and
# test_tutorial.py runs each kind of command to its end.
TRAINED = ["agents.md", "each-hospital.md", "experiment-file.md"]
BEGUN = 77
CHECKED = {"compare", "encode", "sweep", "run", "reproduce", "advise", "list"}
SMALLER = {"--rounds": "2", "--splits": "1", "--methods": "ditto,local"}


def smaller(words: list[str]) -> list[str]:
    """A command with so few rounds, seeds and divisions that it takes seconds, in this process."""
    words = [SMALLER.get(before, word) for before, word in zip(["", *words], words, strict=False)]
    if words[0] == "run":
        words += ["--set", "rounds=2", "--set", "seeds=1"]
    return [*words, "--jobs", "1"] if words[0] in ("compare", "run", "reproduce") else words


def parsed(words: list[str]) -> Any:
    """The context of a command of `idiolect`, whose options are then known to be right."""
    command = typer.main.get_command(app)
    context = command.make_context("idiolect", list(words), resilient_parsing=False)
    while getattr(command, "commands", None):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return context


def stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands end where training would begin."""

    def begun(*_: Any, **__: Any) -> None:
        raise typer.Exit(BEGUN)

    importlib.import_module("idiolect.api")  # first, so that no module keeps a name that is replaced below
    places = {"launch": ("cli.execute", "report.launch"), "launch_sweep": ("study.search.launch",)}
    for name, homes in {**places, "advise": ("study.advice.advise",)}.items():
        for home in homes:
            module = importlib.import_module(f"idiolect.{home}")
            if hasattr(module, name):
                monkeypatch.setattr(module, name, begun)


def shell(page: Path) -> list[list[str]]:
    """The commands of a page that a test looks at."""
    return [words for block in blocks(page) if block.language == "sh" and not block.why for words in commands(block)]


def test_every_block_says_its_language_and_why_it_is_not_run() -> None:
    for page in PAGES:
        for block in blocks(page):
            assert block.language in LANGUAGES, f"{page}: {block.text[:60]}"
            assert not block.why or block.language in ("python", "sh"), f"{page}: {block.text[:60]}"


def test_other_programs_are_there() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page in PAGES:
        if page.name == "four-hospitals.md":
            continue  # tests/deploy/test_four_hospitals.py runs all its commands, of all programs
        for words in shell(page):
            if words[0] == "make":
                assert words[1] in targets, words
            elif words[0] == "pip":
                named = re.search(r"\[(\w+)\]", words[-1])
                assert named is None or named[1] in extras, words
            elif words[:2] == ["python", "-m"]:
                assert importlib.util.find_spec(words[2].partition(".")[0]), words
                sources = "".join(file.read_text() for file in (ROOT / words[2].partition(".")[0]).glob("*.py"))
                assert all(f'"{word}"' in sources for word in words[3:] if word.startswith("--")), words
            else:
                assert words[0] == "idiolect" or words == ["python", "colonies.py"], f"{page}: {words}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_can_begin(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commandline: Callable[..., tuple[int, str, str]]
) -> None:
    """Options, settings and names of every command are right: it comes as far as its training, or is parsed."""
    found = [words[1:] for words in shell(page) if words[0] == "idiolect"]
    if not found:
        return
    monkeypatch.chdir(tmp_path)
    put_files(tmp_path)
    stubs(monkeypatch)
    for block in blocks(page):
        if block.language == "toml":
            (tmp_path / "first.toml").write_text(block.text)
    for words in found:
        plain = words[words.index("--") + 1 :] if words[0] == "launch" else words
        parsed(words if words[0] != "launch" else plain)
        if plain[0] in CHECKED and page.name != "tutorial.md" and "chosen/chosen.toml" not in words:
            code, _, error = commandline(*plain)
            assert code == (0 if plain[0] in ("encode", "list") else BEGUN), f"{words}\n{error}"


@pytest.mark.second
@pytest.mark.parametrize("page", TRAINED)
def test_commands_that_train_run_in_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commandline: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    put_files(tmp_path)
    for block in blocks(ROOT / "docs" / page):
        if block.language == "toml":
            (tmp_path / "first.toml").write_text(block.text)
    for words in shell(ROOT / "docs" / page):
        code, _, error = commandline(*smaller(words[1:]))
        assert code == 0, f"{words}\n{error}"


def python(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language == "python" and not block.why]


LONG = (
    "add-a-method.md",
    "agents.md",
    "coming-from.md",
    "data.md",
    "each-hospital.md",
    "estimators.md",
    "graphs.md",
    "index.md",
    "models.md",
    "new-clients.md",
    "tables.md",
)
"""Pages whose blocks train for long, and which other tests of what they show repeat in part."""
WITH_PYTHON = [
    second(page) if page.name in LONG else page for page in PAGES if python(page) and page.name != "tutorial.md"
]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_runs_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    put_files(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    name = name_of(page)
    if name == "advice.md":  # the tutorial's test asks for advice; here is a division of the rows
        monkeypatch.setattr("idiolect.advise", lambda division: division(0))
    names = names_of(name)
    for block in python(page):
        text = re.sub(r"rounds=\d+", "rounds=2", re.sub(r"seeds=\d+", "seeds=1", block.text))
        exec(compile(text.replace("idiolect.use_cores()", "pass"), name, "exec"), names)
    AFTERWARDS.get(name, lambda *_: None)(names, capsys.readouterr().out)
    if name in ("README.md", "index.md"):  # nothing is kept unasked
        assert {path.name for path in tmp_path.iterdir()} == before


def readme(names: dict[str, Any], printed: str) -> None:
    assert names["model"](names["data"].train.x[0]).shape == (2,)
    assert "worst" in printed
    assert printed.startswith("Inconclusive: one seed is too few.")


def tables(names: dict[str, Any], _: str) -> None:
    """A few lines of numpy predict as the model that was exported."""
    np.testing.assert_allclose(names["h"], names["exported"].outputs(names["frame"]), rtol=1e-5, atol=1e-6)


def data(names: dict[str, Any], _: str) -> None:
    x, layout = names["data"].train.x, names["layout"]
    absent = layout.present(x, "text") == 0
    assert absent.any()
    assert (layout.part(x, "text")[absent] == 0).all()
    assert np.isfinite(names["run"].scores("global").loss).all()


def leaks(names: dict[str, Any], printed: str) -> None:
    assert not names["idiolect"].data.audit(names["copied"]).clean
    assert "held by more than one client" in printed


AFTERWARDS = {"README.md": readme, "tables.md": tables, "data.md": data, "concepts/leaks.md": leaks}
"""What must hold when a page's Python has run."""


def test_what_is_shown_of_nvflare_has_the_arguments_of_its_classes() -> None:
    recipes = pytest.importorskip("nvflare.app_opt.sklearn.recipes.fedavg")
    environments = importlib.import_module("nvflare.recipe.sim_env")
    classes = {"SklearnFedAvgRecipe": recipes.SklearnFedAvgRecipe, "SimEnv": environments.SimEnv}
    shown = [block.text for block in blocks(ROOT / "docs" / "coming-from.md") if "SklearnFedAvgRecipe" in block.text]
    calls = [node for node in ast.walk(ast.parse("".join(shown))) if isinstance(node, ast.Call)]
    found = {node.func.id: node.keywords for node in calls if isinstance(node.func, ast.Name)}
    assert found.keys() == classes.keys()
    for name, keywords in found.items():
        assert {keyword.arg for keyword in keywords} <= set(inspect.signature(classes[name]).parameters), name
