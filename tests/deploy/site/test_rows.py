import json

import numpy as np
import pytest

from idiolect.core.errors import DataError, StoreError
from idiolect.deploy.headers import Joined
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.site.rows import FILE, Rows, accept_changes, digest_of_rows
from idiolect.deploy.site.site import Inline
from idiolect.deploy.site.trainer import SiteTrainer
from idiolect.deploy.transport import InProcess
from tests.deploy.federation import LOOSE, data_of, experiment_of, hub_of, participation, sites_of
from tests.deploy.hub.test_membership import Until

SALT, OTHER = "00" * 32, "01" * 32
DATA = data_of(3)


def test_a_digest_depends_on_salt_values_order_types_and_shapes():
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3)
    first = digest_of_rows(SALT, (x, y))
    assert first == digest_of_rows(SALT, (x.copy(), y.copy()))
    others = [(OTHER, (x, y)), (SALT, (x[::-1], y)), (SALT, (x, y[::-1])), (SALT, (x.reshape(2, 3), y))]
    others += [(SALT, (x.astype(np.float64), y)), (SALT, (x,))]
    assert len({first, *(digest_of_rows(*of) for of in others)}) == len(others) + 1


def test_the_salt_is_drawn_once_and_the_digest_is_forgotten_on_request_only(tmp_path):
    rows = Rows.load(tmp_path)
    assert rows.salt != Rows.load(tmp_path / "elsewhere").salt
    assert not accept_changes(tmp_path)
    Rows(rows.salt, "ab", {"name": "d"}).save(tmp_path)
    assert Rows.load(tmp_path) == Rows(rows.salt, "ab", {"name": "d"})
    with pytest.raises(DataError, match="idiolect site accept-changes KIT s-00000001"):
        Rows.load(tmp_path).check("cd", "s-00000001")
    assert accept_changes(tmp_path)
    assert Rows.load(tmp_path) == Rows(rows.salt)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(StoreError, match="cannot read"):
        Rows.load(tmp_path)


def flipped(data, name):
    """The same rows with other labels: equal counts."""
    own = data.select(lambda index: data.clients[index] == name)
    train = own.stored("train")
    return own.__class__(**{**own.__dict__, "train": train.__class__(train.x, 1 - train.y, train.offsets)})


def begun(folder):
    hub = hub_of(folder / "hub", experiment_of(["fedavg"]), DATA)
    sites = sites_of(folder, DATA)
    with pytest.raises(StoreError, match="died"):
        run_hub(hub, Until(InProcess(sites), 2))
    return hub, sites


def test_flipped_labels_are_refused_until_the_administrator_accepts_them(tmp_path):
    hub, sites = begun(tmp_path)
    changed = flipped(DATA, "site-2")
    sites["site-2"].trainer = Inline(SiteTrainer(lambda kind: changed, floors=LOOSE))
    with pytest.raises(StoreError, match="died"):
        run_hub(hub, Until(InProcess(sites), 3))
    line = participation(hub)[2]
    assert line["answered"] == ["site-1", "site-3"]
    assert "training rows have changed since it joined study" in line["missing"]["site-2"]
    assert "rows_changed" not in line
    assert accept_changes(next((tmp_path / "site-2" / "state").iterdir()))
    run_hub(hub, InProcess(sites))
    line = participation(hub)[3]
    assert "site-2" in line["answered"]
    assert line["rows_changed"] == ["site-2"]


def test_rows_that_change_while_a_job_runs_are_refused_when_the_trainer_is_started_again(tmp_path):
    hub, sites = begun(tmp_path)
    changed, trainer = flipped(DATA, "site-2"), sites["site-2"].trainer

    class Restarted:
        """The data change, and the trainer dies, after the site has joined."""

        def call(self, message, seconds):
            if message.header["task"] == "local":
                return Inline(SiteTrainer(lambda kind: changed, floors=LOOSE)).call(message, seconds)
            return trainer.call(message, seconds)

        def close(self):
            """Nothing."""

    sites["site-2"].trainer = Restarted()
    run_hub(hub, InProcess(sites))
    assert "training rows have changed" in participation(hub)[2]["missing"]["site-2"]


def test_the_hub_has_the_digest_and_not_the_salt(tmp_path):
    hub, _ = begun(tmp_path)
    salts = [json.loads(next((tmp_path / name).glob(f"state/*/{FILE}")).read_text())["salt"] for name in DATA.clients]
    assert len({*salts}) == 3
    content = b"".join(path.read_bytes() for path in hub.rglob("*") if path.is_file())
    content += b"".join((tmp_path / name / "sent.jsonl").read_bytes() for name in DATA.clients)
    assert not any(salt.encode() in content for salt in salts)


def test_a_digest_says_nothing_longer_than_one():
    with pytest.raises(ValueError, match="at most 64"):
        Joined(samples={}, rows="0" * 65)


def test_a_hub_that_sends_a_salt_learns_nothing_by_it(tmp_path):
    _, sites = begun(tmp_path)
    seen = []

    class Watched:
        def call(self, message, seconds):
            seen.append(message.header.get("salt"))
            return inner.call(message, seconds)

    inner, site = sites["site-1"].trainer, sites["site-1"]
    site.trainer = Watched()
    hub = InProcess({"site-1": site})

    class Salted:
        sites = ("site-1",)

        def call(self, round, messages, *, deadline):
            for message in messages.values():
                message.header["salt"] = SALT
            return hub.call(round, messages, deadline=deadline)

    folder = hub_of(tmp_path / "other", experiment_of(["fedavg"]), DATA, sites=("site-1",))
    assert HubConfig.load(folder).present == ("site-1",)
    run_hub(folder, Salted())
    assert participation(folder)[-1]["answered"] == ["site-1"]
    assert seen
    assert SALT not in seen
