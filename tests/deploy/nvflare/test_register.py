from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.nvflare.kits import Kit
from idiolect.deploy.nvflare.register import register, register_folder, registered

STUDY = "heart-0a1b2c3d"


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path / "kit", "server", "hub", "localhost", 8002, "hub")


def test_a_study_has_the_folder_that_was_registered_last_if_the_first_is_gone(kit: Kit, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    entries = register_folder(kit)
    assert registered(entries, STUDY) is None
    register(kit, STUDY, tmp_path / "first")
    register(kit, STUDY, tmp_path / "first")
    assert registered(entries, STUDY) == tmp_path / "first"
    with pytest.raises(ConfigError, match=r"heart-0a1b2c3d' is in '.*first' already, and '.*second' is a copy"):
        register(kit, STUDY, tmp_path / "second")
    (tmp_path / "first").rmdir()
    register(kit, STUDY, tmp_path / "second")
    assert registered(entries, STUDY) == tmp_path / "second"


@pytest.mark.parametrize("name", ["", ".", "..", "../kit/studies/x", "a/b", "/etc", "a\n"])
def test_what_is_no_name_of_a_study_has_no_folder(kit: Kit, tmp_path: Path, name: str) -> None:
    assert registered(register_folder(kit), name) is None
    with pytest.raises(ConfigError, match="is no id"):
        register(kit, name, tmp_path)


def test_a_damaged_entry_is_one_line(kit: Kit, tmp_path: Path) -> None:
    register(kit, STUDY, tmp_path)
    (register_folder(kit) / f"{STUDY}.json").write_text("[]")
    with pytest.raises(StoreError, match="names no folder; remove it"):
        registered(register_folder(kit), STUDY)
