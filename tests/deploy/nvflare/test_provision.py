from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from idiolect.core.errors import ConfigError
from idiolect.deploy.nvflare.kits import certificate, harden
from idiolect.deploy.nvflare.provision import LEAD, load_kits, provision


def test_a_federation_s_kits_are_signed_hardened_and_inside_the_folder(tmp_path: Path) -> None:
    kits = provision(tmp_path / "f", "fed", ["north", "south-2"], 8123)
    assert kits == load_kits(tmp_path / "f", "fed", ["north", "south-2"])
    everyone = (kits.hub, kits.lead, *kits.sites.values())
    assert [certificate(kit).name for kit in everyone] == ["localhost", LEAD, "north", "south-2"]
    assert {kit.port for kit in everyone} == {8123}
    assert [harden(kit.folder) for kit in everyone if kit.kind != "admin"] == [[], [], []]
    stores = (kits.hub.folder / "local" / "resources.json").read_text()
    assert "/tmp/nvflare" not in stores
    with pytest.raises(ConfigError, match="is not empty"):
        provision(tmp_path / "f", "fed", ["north"], 8123)


@pytest.mark.parametrize(
    ("project", "sites", "port", "host", "line"),
    [
        ("f d", ["a"], 1, "localhost", "project 'f d'"),
        ("fed", ["a b"], 1, "localhost", "site 'a b'"),
        ("fed", [], 1, "localhost", "needs a site"),
        ("fed", ["a", "b", "a"], 1, "localhost", "two sites are named 'a'"),
        ("fed", ["localhost"], 1, "localhost", "cannot be named 'localhost'"),
        ("fed", ["a"], 70000, "localhost", "port 70000"),
        ("fed", ["a"], 1, "no host", "host 'no host'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_folder(
    tmp_path: Path, project: str, sites: list[str], port: int, host: str, line: str
) -> None:
    with pytest.raises(ConfigError, match=line):
        provision(tmp_path / "f", project, sites, port, host)
    assert not (tmp_path / "f").exists()
