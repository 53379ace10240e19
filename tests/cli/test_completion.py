"""Shell completion: the script, what it asks, and a help page without it in the way."""

import shutil
import subprocess

import pytest

from idiolect.cli.completion import Shell


@pytest.mark.parametrize("shell", Shell)
def test_the_script_of_each_shell_asks_idiolect(commandline, shell):
    code, out, err = commandline("--show-completion", shell)
    assert (code, err) == (0, "")
    assert "_IDIOLECT_COMPLETE" in out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_accepts_the_script(commandline):
    _, out, _ = commandline("--show-completion", "bash")
    check = f"{out}\ncomplete -p idiolect"
    ended = subprocess.run(["bash", "-c", check], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "idiolect" in ended.stdout


@pytest.mark.parametrize(
    ("typed", "answers"),
    [
        ("idiolect res", {"resume"}),
        ("idiolect wa", {"watch"}),
        ("idiolect tr", {"track"}),
        ("idiolect watch --p", {"--page", "--port"}),
        ("idiolect compare --ml", {"--mlflow"}),
        ("idiolect site su", {"summary"}),
    ],
)
def test_what_may_follow_is_answered(commandline, monkeypatch, typed, answers):
    monkeypatch.setenv("_IDIOLECT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    code, out, _ = commandline()
    assert code == 0
    assert {*out.split()} == answers


def test_other_shells_are_refused_and_nothing_is_installed(commandline):
    code, _, err = commandline("--show-completion", "dos")
    assert (code, err.count("\n")) == (2, 1)
    assert "--install-completion" not in commandline("--help")[1]
