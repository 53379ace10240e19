"""Models, private states and predictions that a command writes are for its user only, also with an umask of 0."""

from tests.cli.test_models import RUN, table
from tests.rights import loose, mode, umask


def test_models_states_and_predictions_are_private_and_reports_are_as_the_umask_says(
    tmp_path, monkeypatch, commandline
):
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    known, new = table(tmp_path / "known.csv", {"w0": 20, "w1": 24}), table(tmp_path / "new.csv", {"n0": 12}, seed=1)

    def call(*arguments):
        code, _, err = commandline(*arguments)
        assert code == 0, err

    with umask(0):
        call("compare", "--data", known, "--methods", "fedper", "--model", "mlp", *RUN, "--out", "run")
        assert loose(tmp_path / "run" / "checkpoints") == loose(tmp_path / "run" / "models") == []
        assert list((tmp_path / "run" / "checkpoints").iterdir())
        assert mode(tmp_path / "run" / "report.md") == mode(tmp_path / "run" / "clients.csv") == 0o666
        call("resume", "run")  # nothing is left, but all is opened again
        call("personalize", "run", "--data", new, "--method", "fedper", "--out", "made")
        assert loose(tmp_path / "made") == []
        model = next((tmp_path / "made" / "models").rglob("*.safetensors"))
        call("predict", model, new, "--out", "answers.csv")
        for format in ("safetensors", "numpy"):
            call("export", model, "--format", format, "--out", f"exported-{format}")
    written = [tmp_path / "answers.csv", *tmp_path.glob("exported-*")]
    assert len(written) == 5
    assert {mode(path) for path in written} == {0o600}
