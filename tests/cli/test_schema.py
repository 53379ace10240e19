"""The command schema: it prints the schema of experiment files, or writes it for an editor."""

import json

from idiolect.cli.experiment_schema import PACKAGED


def test_the_schema_is_printed(commandline):
    code, out, err = commandline("schema")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(PACKAGED.read_text(encoding="utf-8"))


def test_the_schema_is_written_and_the_line_that_names_it_is_printed(commandline, tmp_path):
    file = tmp_path / "idiolect.schema.json"
    code, out, err = commandline("schema", "-o", file)
    assert (code, err) == (0, "")
    assert "#:schema ./idiolect.schema.json" in out
    assert file.read_text(encoding="utf-8") == PACKAGED.read_text(encoding="utf-8")
    code, out, _ = commandline("schema", "-o", file, "--json")
    assert json.loads(out) == {"schema": str(file)}


def test_a_place_that_cannot_be_written_is_one_line(commandline, tmp_path):
    code, out, err = commandline("schema", "-o", tmp_path)
    assert (code, out, err.count("\n")) == (1, "", 1)
