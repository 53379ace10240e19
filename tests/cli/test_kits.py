"""The kits and unit files that commands share."""

import json
import stat

import pytest

from idiolect.cli.kits import print_unit, site_kit
from idiolect.core.errors import IdiolectError
from tests.deploy.nvflare.made import site_kit as made_kit


def test_a_site_s_kit_and_what_is_none(tmp_path):
    made_kit(tmp_path / "kit", "north")
    assert site_kit(tmp_path / "kit").name == "north"
    with pytest.raises(IdiolectError, match="no kit") as error:
        site_kit(tmp_path)
    assert "\n" not in str(error.value)


def test_a_unit_is_printed_or_written(tmp_path, capsys):
    print_unit("[Unit]\nA=1\n", None, as_json=False)
    assert "[Unit]\nA=1" in capsys.readouterr().out
    print_unit("[Unit]\n", tmp_path / "a.service", as_json=True)
    assert (tmp_path / "a.service").read_text() == "[Unit]\n"
    assert stat.S_IMODE((tmp_path / "a.service").stat().st_mode) & 0o444
    assert json.loads(capsys.readouterr().out)["file"] == str(tmp_path / "a.service")
