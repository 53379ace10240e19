"""Renewing a certificate by commands: request, signature, installation."""

import json

from tests.deploy.nvflare.test_renewal import federation


def test_a_certificate_is_renewed_by_three_commands(tmp_path, commandline, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kit, authority = federation(tmp_path)
    own = str(kit.folder)
    code, out, err = commandline("site", "renew", own, "--request", "a.request")
    assert (code, "it holds no key" in out) == (0, True), err
    code, out, err = commandline("hub", "sign", "a.request", "--ca", authority, "-o", "a.crt", "--json")
    assert (code, json.loads(out)["name"]) == (0, "site-1"), err
    code, out, err = commandline("site", "renew", own, "--install", "a.crt")
    assert (code, "used from the next start" in out) == (0, True), err


def test_exactly_one_of_both_is_named(tmp_path, commandline):
    kit, _ = federation(tmp_path)
    for options in ((), ("--request", tmp_path / "r", "--install", tmp_path / "c")):
        code, _, err = commandline("site", "renew", kit.folder, *options)
        assert (code, err.count("\n"), "either --request FILE or --install FILE" in err) == (1, 1, True)
    assert not (tmp_path / "r").exists()
