from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from cryptography.hazmat.primitives.asymmetric import ec

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.nvflare.kits import certificate, read_kit, require_kind
from tests.deploy.nvflare.made import NOW, signed, site_kit, write_key


def test_a_kit_says_who_it_is_and_where_the_hub_is(tmp_path: Path) -> None:
    kit = read_kit(site_kit(tmp_path / "k", "north"))
    assert (kit.kind, kit.name, kit.host, kit.port, kit.identity) == (
        "client",
        "north",
        "localhost",
        8002,
        "localhost",
    )
    told = certificate(kit, NOW + timedelta(days=29))
    assert (told.name, told.not_after) == ("north", NOW + timedelta(days=30))
    require_kind(kit, "client")
    with pytest.raises(ConfigError, match=r"is a site's kit; a hub's is needed here"):
        require_kind(kit, "server")


def test_a_folder_that_is_no_kit_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no kit"):
        read_kit(tmp_path)
    kit = site_kit(tmp_path / "k")
    for text, line in (
        ("{", "is no JSON file"),
        ("[" * 100_000, "is no JSON file"),
        ("{}", "is not what `nvflare provision`"),
        ("[]", "is not what"),
    ):
        (kit / "startup" / "fed_client.json").write_text(text)
        with pytest.raises(StoreError, match=line):
            read_kit(kit)


@pytest.mark.parametrize(("days", "line"), [(31, "expired on 2026-07-01"), (-1, "set this machine's clock")])
def test_a_certificate_out_of_its_time_is_one_line(tmp_path: Path, days: int, line: str) -> None:
    with pytest.raises(StoreError, match=line):
        certificate(read_kit(site_kit(tmp_path / "k")), NOW + timedelta(days=days))


@pytest.mark.parametrize("name", ["client.crt", "client.key", "rootCA.pem"])
def test_a_file_that_is_missing_or_damaged_is_named(tmp_path: Path, name: str) -> None:
    path = site_kit(tmp_path / "k") / "startup" / name
    path.write_text("nothing")
    with pytest.raises(StoreError, match=f"{name} cannot be read"):
        certificate(read_kit(tmp_path / "k"), NOW)
    path.unlink()
    with pytest.raises(StoreError, match=f"{name} is missing"):
        certificate(read_kit(tmp_path / "k"), NOW)


def test_another_s_key_root_or_certificate_is_refused(tmp_path: Path) -> None:
    startup = site_kit(tmp_path / "k") / "startup"
    kit, other = read_kit(tmp_path / "k"), ec.generate_private_key(ec.SECP256R1())
    kept = {name: (startup / name).read_bytes() for name in ("client.crt", "client.key", "rootCA.pem")}
    write_key(startup / "client.key", other)
    with pytest.raises(StoreError, match=r"is not the key of client\.crt"):
        certificate(kit, NOW)
    (startup / "client.key").write_bytes(kept["client.key"])
    (startup / "rootCA.pem").write_bytes(signed("fed", "fed", other, other))
    with pytest.raises(StoreError, match="was not signed by the federation's root"):
        certificate(kit, NOW)
    (startup / "rootCA.pem").write_bytes(kept["rootCA.pem"])
    text = (startup / "fed_client.json").read_text().replace("site-1", "site-2")
    (startup / "fed_client.json").write_text(text)
    with pytest.raises(StoreError, match="is the certificate of 'site-1', but the kit is of 'site-2'"):
        certificate(read_kit(tmp_path / "k"), NOW)
