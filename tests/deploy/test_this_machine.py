"""A federation whose sites are folders of this machine."""

import pytest

from idiolect.core.errors import ConfigError
from idiolect.data import hold_out
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.kind import Kind
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.data import OwnData, own_data
from idiolect.deploy.this_machine import ARRAYS, divided, forget_samples, make_site, prepare, site_names
from idiolect.study.run.resolve import Workbench
from tests.deploy.federation import data_of, experiment_of

DATA, ONE = data_of(sites=4), experiment_of(["fedavg"])


def test_clients_become_sites():
    bench = Workbench(data=DATA)
    assert divided(ONE, bench, None) is divided(ONE, bench, 4) is DATA
    merged = divided(ONE, bench, 2)
    assert merged.num_clients == 2
    assert merged.train.count == DATA.train.count
    assert site_names(merged) == ["site-1", "site-2"]
    with pytest.raises(ConfigError, match=r"--sites 5: .* has 4 clients; name at most as many"):
        divided(ONE, bench, 5)
    with pytest.raises(ConfigError, match="leave held_out out"):
        divided(ONE, Workbench(data=hold_out(DATA, 0.25)), None)


def test_a_folder_goes_on_with_the_same_federation_alone(tmp_path):
    out = tmp_path / "deep" / "out"
    names = prepare(out, ONE, DATA, deadline=3.0)
    assert HubConfig.load(out).deadline == 3.0
    assert prepare(out, ONE, DATA) == names
    with pytest.raises(ConfigError, match="other data or sites"):
        prepare(out, ONE, data_of(sites=3))
    refused = tmp_path / "refused"
    with pytest.raises(ConfigError, match="pools all clients' samples"):
        prepare(refused, experiment_of(["global"]), DATA)
    assert not refused.exists()


def test_a_site_has_its_own_samples_alone_and_they_can_be_forgotten(tmp_path):
    for client, name in enumerate(site_names(DATA)):
        make_site(tmp_path / "sites" / name, name, DATA, client)
    folder = tmp_path / "sites" / "site-2"
    assert SiteConfig.load(folder).data == {"arrays": ARRAYS}
    own = own_data(OwnData(name="site-2", arrays=folder / ARRAYS), Kind.of(DATA))
    assert own.clients == ("site-2",)
    assert (own.train.x == DATA.train.client(1)[0]).all()
    before = (folder / "site.toml").stat().st_mtime_ns
    make_site(folder, "site-2", DATA, 0)  # one that is there stays as it is
    assert (folder / "site.toml").stat().st_mtime_ns == before
    forget_samples(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["site.toml"]
