"""Sites that may only connect outwards, with IPv6 only, and behind an HTTP proxy: what the engine can do."""

import shutil
from pathlib import Path

import pytest

from idiolect.deploy.nvflare.provision import Kits, provision
from tests.deploy.hosts import BEHIND, HUB, HUB6, PORT, PROXY_PORT, Host, hosts, why_not

pytestmark = pytest.mark.second
NAME = "hub.example.org"
HERE = Path(__file__).parent
FILES = HERE.parents[2] / "docs" / "four-hospitals"
SITES = ("north", "south", "west")
"""north may only connect outwards, south has only IPv6, west has only a proxy."""
PROXY = f"http://user:password@{BEHIND}:{PROXY_PORT}"


def use_scheme(kits: Kits, scheme: str) -> None:
    """Let all kits use this scheme, as a line of profile.yml does."""
    for kit in (kits.hub, kits.lead, *kits.sites.values()):
        for path in (kit.folder / "startup").glob("fed_*.json"):
            text = path.read_text()
            assert '"scheme": "http"' in text
            path.write_text(text.replace('"scheme": "http"', f'"scheme": "{scheme}"'))


def study(machines: dict[str, Host], kits: Kits, sites: tuple[str, ...]) -> None:
    """A study of these sites, approved by them; the hub's name resolves everywhere."""
    hub = machines["hub"]
    shutil.copytree(kits.hub.folder, hub.folder / "kits" / "hub")
    shutil.copytree(kits.lead.folder, hub.folder / "kits" / "lead")
    shutil.copy(FILES / "hospitals.toml", hub.folder)
    for name, machine in machines.items():
        # Also at the site behind the proxy, as in a network with its own DNS; it has no route to this address.
        known = HUB6 if name == "south" else HUB
        machine.run(f"echo {known} {NAME} >> /etc/hosts")
    command = f"idiolect hub init study hospitals.toml --sites {','.join(sites)} --agree --set rounds=2"
    status, printed = hub.run(f"{command} && cp study/study.json /mnt/stick/")
    assert status == 0, printed
    for site in sites:
        shutil.copytree(kits.sites[site].folder, machines[site].folder / "kit")
        shutil.copy(FILES / "make_tables.py", machines[site].folder)
        label = "diagnosis" if site == "south" else "outcome"
        status, printed = machines[site].run(
            f"python make_tables.py {site} && "
            f"idiolect site init kit patients.csv --label {label} --client '' --allow-summaries && "
            "idiolect site approve /mnt/stick/study.json kit --yes"
        )
        assert status == 0, printed


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_outbound_only_and_ipv6_only_and_a_proxy(scheme: str, tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    kits = provision(tmp_path / "made", "hospitals", SITES, PORT, NAME)
    use_scheme(kits, scheme)
    (tmp_path / "machines").mkdir()
    families = {"north": (4,), "south": (6,)}
    with hosts(
        tmp_path / "machines", ["north", "south", "proxy", "west"], families=families, through={"west": "proxy"}
    ) as machines:
        study(machines, kits, SITES)
        shutil.copy(HERE / "proxy.py", machines["proxy"].folder)
        proxy = machines["proxy"].start("python proxy.py user:password")
        hub = machines["hub"].start("idiolect hub run study --kit kits/hub --admin kits/lead")
        machines["hub"].wait_for(hub, "waiting for")
        sites = {
            name: machines[name].start("idiolect site run kit", {"https_proxy": PROXY} if name == "west" else {})
            for name in SITES
        }
        machines["west"].wait_for(sites["west"], "takes part")
        assert "✗ connection" in sites["west"].read_text()  # the check does not use the proxy
        if scheme == "grpc":
            machines["hub"].wait_for(hub, "report, figures, CSV")
            lines = proxy.read_text().splitlines()
            assert {*lines} == {f"CONNECT {NAME}:{PORT} HTTP/1.1 taken"}
            assert len(lines) >= 2  # the site's engine, and its worker in the job
        else:
            machines["hub"].wait_for(hub, "job 1 has started with north, south")
            assert proxy.read_text() == ""  # the engine ignores https_proxy
            _, printed = machines["hub"].run("idiolect hub status study --admin kits/lead")
            assert "sites: north (registered), south (registered), west (not registered)" in printed
        assert all(machines[site].listening() == set() for site in SITES)
        assert {port for _, port in machines["hub"].listening()} == {PORT}
