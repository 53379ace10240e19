import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.folder import data_folder


def test_argument_wins_over_the_environment(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name / "mnist").mkdir(parents=True)
    monkeypatch.setenv("IDIOLECT_DATA", str(tmp_path / "a"))
    assert data_folder(None, "mnist", "") == tmp_path / "a" / "mnist"
    assert data_folder(tmp_path / "b", "mnist", "") == tmp_path / "b" / "mnist"


def test_another_name_of_the_folder(tmp_path):
    (tmp_path / "mtl-small").mkdir()
    assert data_folder(tmp_path, "school", "", also="mtl-small") == tmp_path / "mtl-small"
    (tmp_path / "school").mkdir()
    assert data_folder(tmp_path, "school", "", also="mtl-small") == tmp_path / "school"


def test_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.delenv("IDIOLECT_DATA", raising=False)
    with pytest.raises(DataError, match=r"set IDIOLECT_DATA.*published there"):
        data_folder(None, "mnist", "published there")
    with pytest.raises(DataError, match=r"no folder .*mnist; published there"):
        data_folder(tmp_path, "mnist", "published there")
