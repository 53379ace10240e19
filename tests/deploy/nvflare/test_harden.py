import json
from pathlib import Path

import pytest

from idiolect.core.errors import StoreError
from idiolect.deploy.nvflare.harden import allow_list_lines, harden
from idiolect.deploy.nvflare.names import ALLOWED
from tests.deploy.nvflare.made import site_kit


def read(kit: Path, name: str) -> dict[str, object]:
    return json.loads((kit / "local" / name).read_text())


def test_a_hardened_kit_permits_four_classes_and_no_code_to_anybody(tmp_path: Path) -> None:
    kit = site_kit(tmp_path / "k")
    assert harden(kit) == ["resources.json", "authorization.json", "log_config.json"]
    assert read(kit, "resources.json")["class_allow_list"] == list(ALLOWED)
    assert read(kit, "resources.json")["allow_log_streaming"] is False
    roles = json.loads((kit / "local" / "authorization.json").read_text())["permissions"]
    assert {name: (role["byoc"], role["submit_job"]) for name, role in roles.items()} == {
        "project_admin": ("none", "any"),
        "lead": ("none", "any"),
    }
    assert '"WARNING"' in (kit / "local" / "log_config.json").read_text()


def test_hardening_again_changes_nothing_and_keeps_what_was_set_by_hand(tmp_path: Path) -> None:
    kit = site_kit(tmp_path / "k")
    harden(kit)
    content = read(kit, "resources.json") | {"own": 1}
    (kit / "local" / "resources.json").write_text(json.dumps(content))
    assert harden(kit) == ["resources.json"]  # as it formats it
    assert harden(kit) == []
    assert read(kit, "resources.json")["own"] == 1


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    kit = site_kit(tmp_path / "k")
    (kit / "local" / "authorization.json.default").write_text(text)
    with pytest.raises(StoreError, match=r"authorization\.json\.default is"):
        harden(kit)
    assert not (kit / "local" / "authorization.json").exists()


def test_the_lines_for_administrators_are_the_setting() -> None:
    text = "{" + "".join(allow_list_lines()).removesuffix(",") + "}"
    assert json.loads(text) == {"class_list_enforcement_mode": "enforce", "class_allow_list": list(ALLOWED)}
