import pytest

import idiolect.deploy.nvflare.names as names
from idiolect.core.errors import ConfigError


def test_without_the_engine_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs nvflare: pip install 'idiolect\[sites\]'"):
        names.check_installed()


def test_the_classes_a_job_may_name_exist() -> None:
    pytest.importorskip("nvflare")
    from pydoc import locate

    assert all(locate(name) is not None for name in names.ALLOWED)
