from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

import json

from cryptography.hazmat.primitives.asymmetric import ec

import idiolect.deploy.nvflare.kits as names
from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.nvflare.kits import ALLOWED, allow_list_lines, certificate, harden, read_kit, require_kind
from tests.deploy.nvflare.made import NOW, signed, site_kit, write_key


def test_without_the_engine_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs nvflare: pip install 'idiolect\[sites\]'"):
        names.check_installed()


def test_the_classes_a_job_may_name_exist() -> None:
    pytest.importorskip("nvflare")
    from pydoc import locate

    assert all(locate(name) is not None for name in names.ALLOWED)


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
