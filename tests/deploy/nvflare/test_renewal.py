"""A certificate is renewed for the same name and key only, and the kit is whole before and after."""

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("nvflare")

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.nvflare.kits import certificate, read_kit
from idiolect.deploy.nvflare.renewal import install, sign_request, write_request
from tests.deploy.nvflare.made import signed, site_kit, write_key

START = datetime.now(UTC) - timedelta(days=10)


def federation(folder, name="site-1", start=START):
    """A kit and the folder of the root key that signed its certificate."""
    kit, root = site_kit(folder / name, name, start), ec.generate_private_key(ec.SECP256R1())
    startup, authority = kit / "startup", folder / f"ca-{name}"
    authority.mkdir()
    write_key(authority / "rootCA.key", root)
    key = load_pem_private_key((startup / "client.key").read_bytes(), None)
    for target in (authority, startup):
        (target / "rootCA.pem").write_bytes(signed("fed", "fed", root, root, start, 3650))
    (startup / "client.crt").write_bytes(signed(name, "fed", key, root, start))
    return read_kit(kit), authority


def contents(kit):
    return {path.name: path.read_bytes() for path in (kit.folder / "startup").iterdir()}


def test_a_renewed_certificate_has_the_same_key_and_name_and_a_later_date(tmp_path):
    kit, authority = federation(tmp_path)
    before, old = contents(kit), certificate(kit)
    request, made = tmp_path / "a.request", tmp_path / "a.crt"
    write_request(kit, request)
    assert b"PRIVATE" not in request.read_bytes()
    name, until = sign_request(request, authority, made, 365)
    details = install(kit, made)
    assert (name, details.name, details.not_after) == ("site-1", "site-1", until)
    assert certificate(kit) == details
    assert 364 < (details.not_after - datetime.now(UTC)).total_seconds() / 86400 <= 365 < 3000
    assert old.not_after < details.not_after
    after = contents(kit)
    assert after["client.crt.old"] == before["client.crt"]
    assert {name for name in before if before[name] != after[name]} == {"client.crt"}
    renewed = x509.load_pem_x509_certificate(after["client.crt"])
    assert list(renewed.extensions) == list(x509.load_pem_x509_certificate(before["client.crt"]).extensions)


def test_it_ends_with_the_root(tmp_path):
    kit, authority = federation(tmp_path)
    write_request(kit, tmp_path / "r")
    root = x509.load_pem_x509_certificate((authority / "rootCA.pem").read_bytes())
    assert sign_request(tmp_path / "r", authority, tmp_path / "c", 36500)[1] == root.not_valid_after_utc


def test_requests_that_are_refused(tmp_path):
    kit, authority = federation(tmp_path)
    other, foreign = federation(tmp_path, "site-2")
    mine, theirs, mixed = (tmp_path / name for name in ("mine", "theirs", "mixed"))
    write_request(kit, mine)
    write_request(other, theirs)
    out, mark = tmp_path / "out.crt", b"-----BEGIN CERTIFICATE REQUEST"
    parts = [path.read_bytes().partition(mark) for path in (mine, theirs)]
    mixed.write_bytes(parts[0][0] + mark + parts[1][2])  # another's name with the own key
    cut = tmp_path / "cut"
    cut.write_bytes(mine.read_bytes()[:-200])
    for path, ca, message in (
        (mixed, authority, "is not of the key and name"),
        (theirs, authority, "was not signed by the root"),
        (cut, authority, "is no request"),
        (tmp_path / "absent", authority, "cannot read"),
        (mine, tmp_path, "cannot read"),
    ):
        with pytest.raises((ConfigError, StoreError), match=message):
            sign_request(path, ca, out, 365)
    (foreign / "rootCA.pem").write_bytes((authority / "rootCA.pem").read_bytes())
    with pytest.raises(ConfigError, match=r"rootCA\.key is not the key of rootCA\.pem"):
        sign_request(mine, foreign, out, 365)
    with pytest.raises(ConfigError, match="'site-1' was revoked: it gets no new certificate"):
        sign_request(mine, authority, out, 365, {"site-1"})
    assert not out.exists()


def test_one_that_has_expired_is_not_renewed(tmp_path):
    kit, _ = federation(tmp_path, start=datetime.now(UTC) - timedelta(days=40))
    with pytest.raises(StoreError, match="expired on"):
        write_request(kit, tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_a_certificate_of_another_leaves_the_kit_as_it_was(tmp_path):
    kit, _ = federation(tmp_path)
    other, foreign = federation(tmp_path, "site-2")
    before = contents(kit)
    write_request(other, tmp_path / "r")
    sign_request(tmp_path / "r", foreign, tmp_path / "theirs.crt", 365)
    (tmp_path / "text.crt").write_text("no certificate")
    for name in ("theirs.crt", "text.crt"):
        with pytest.raises(StoreError, match=f"{name} does not fit .*site-1, which is unchanged"):
            install(kit, tmp_path / name)
    with pytest.raises(StoreError, match="cannot read"):
        install(kit, tmp_path / "absent.crt")
    assert contents(kit) == before
