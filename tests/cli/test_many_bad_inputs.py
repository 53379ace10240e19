"""Hundreds of bad inputs: each ends with one line that says what was wrong, soon, and leaves nothing behind."""

import os
import time
import warnings
from contextlib import suppress

import pytest

from idiolect.algorithms.registry import build
from idiolect.cli.options import value_of
from idiolect.core.errors import ConfigError
from tests.cli import bad_inputs
from tests.cli.bad_inputs import Bad
from tests.tiers import second

SECONDS = 30.0  # of the processor: only a command that hangs or trains takes so long, whatever else the machine does
FEWEST = 500
GROUP = 40  # inputs of one test
INPUTS = bad_inputs.everything()
GROUPS = [INPUTS[first : first + GROUP] for first in range(0, len(INPUTS), GROUP)]


def complaints(idiolect, folder, bad: Bad) -> list[str]:
    """What is wrong with how a command ends; nothing if it ends as it should."""
    for name, content in bad.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    os.symlink("loop", folder / "loop")
    before = contents(folder)
    began = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            code, out, err = idiolect(*bad.arguments)
        except Exception as error:
            return [f"{type(error).__name__}: {str(error)[:200]}"]
    seconds = time.process_time() - began
    told = [f"code {code}"] if code not in (1, 2) else []
    told += [f"{err.count(chr(10))} lines: {err[:300]}"] if err.count("\n") != 1 else []
    told += [f"begins otherwise: {err[:60]}"] if not err.startswith("error: ") else []
    told += [f"on stdout: {out[:100]}"] if out else []
    told += ["speaks of Python"] if "Traceback" in err or "Error:" in err else []
    told += [f"says not {bad.words!r}: {err[:200]}"] if bad.words not in err else []
    told += [f"warns: {warned[0].message}"] if warned else []
    changed = sorted(name for name, _ in contents(folder).items() ^ before.items())
    told += [f"leaves {changed[0]}"] if changed else []
    told += [f"took {seconds:.1f} s"] if seconds > SECONDS else []
    return told


def contents(folder) -> dict[str, bytes]:
    """Every path below a folder, with the content of the files."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def test_there_are_enough_and_no_two_are_alike():
    inputs = bad_inputs.everything()
    assert len({(bad.arguments, *bad.files.items(), *bad.environment.items()) for bad in inputs}) == len(inputs)
    assert len(inputs) >= FEWEST
    assert {bad.arguments[0] for bad in inputs} >= {"compare", "sweep", "run", "resume", "reproduce", "show", "list"}


def test_no_method_takes_a_value_that_it_cannot_have():
    taken = []
    for method, key, text in bad_inputs.refused_settings():
        with suppress(ConfigError):
            build({"name": method, key: value_of(text)})
            taken.append(f"{method}.{key}={text}")
    assert not taken


def test_every_error_of_a_setting_names_the_method_and_the_setting():
    silent = []
    for method, key, text in bad_inputs.refused_settings():
        with suppress(ConfigError):
            try:
                build({"name": method, key: value_of(text)})
            except ConfigError as error:
                if not str(error).startswith(f"{method}: {key}"):
                    silent.append(f"{method}.{key}={text}: {error}")
    assert not silent


@pytest.mark.parametrize(
    "group",
    [group if number % 4 == 1 else second(group) for number, group in enumerate(GROUPS)],
    ids=lambda group: group[0].name[-60:],
)
def test_one_clear_line_and_nothing_left(commandline, monkeypatch, tmp_path_factory, group):
    wrong = {}
    for number, bad in enumerate(group):
        folder = tmp_path_factory.mktemp(f"bad{number}")
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            for key, value in bad.environment.items():
                patch.setenv(key, value)
            if told := complaints(commandline, folder, bad):
                wrong[bad.name] = told
    assert not wrong, "\n".join(f"{name}\n    {'; '.join(told)}" for name, told in wrong.items())
