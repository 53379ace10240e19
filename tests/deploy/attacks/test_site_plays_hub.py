"""S1: a site with a valid certificate calls other sites as the hub does, with batches of one row."""

import json
from pathlib import Path

import numpy as np
import pytest

from idiolect.deploy.nvflare.kits import HUB_FOLDER
from idiolect.deploy.nvflare.local_federation import kits_here
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.this_machine import prepare
from tests.deploy.attacks.federation import HERE, supervise, table, training_rows, with_code
from tests.deploy.federation import experiment_of

pytestmark = pytest.mark.second
MALICIOUS = HERE.parent / "nvflare" / "malicious"
ATTACKER = "site-3"
LOOSE = {"site-1": "", "site-2": "caller", "site-4": "caller,consent", "site-5": "caller,consent"}
"""Victim -> the guards that are taken out of its code. site-4 has the default floors, the others have none."""


def test_each_guard_by_itself_refuses_and_without_all_a_row_comes_out(tmp_path: Path) -> None:
    data = table([275] * 5, features=6)
    out, attacks = tmp_path / "out", tmp_path / "attacks.jsonl"
    names = prepare(out, experiment_of(["fedavg"], rounds=1, eval_every=1), data)
    kits = kits_here(out, names, data)
    SiteConfig.load(kits.sites["site-4"].site).model_copy(update={"floors": Floors()}).save(kits.sites["site-4"].site)
    sites = {site: {**with_code(HERE / "loose"), "LOOSE": guards} for site, guards in LOOSE.items()}
    sites[ATTACKER] = {**with_code(MALICIOUS), "ATTACKS": str(attacks), "VICTIMS": ",".join(LOOSE)}
    supervise(out, kits, {HUB_FOLDER: str(out)}, sites)

    told = [json.loads(line) for line in attacks.read_text().splitlines()]
    replies = {(one["what"], one["victim"]): one for one in told if one["victim"]}
    refusals = {
        "site-1": f"'{ATTACKER}' may not call 'answer' here now",
        "site-2": "site 'site-2' refuses: study ",
        "site-4": "site 'site-4' refuses: floors.rows_per_step = 10, but a gradient step has 1 row",
    }
    for victim, line in refusals.items():
        assert replies["answer begin", victim]["header"]["error"].startswith(line)
        assert "error" in replies["answer round", victim]["header"]  # the run has not begun
        assert not any(one.get("vectors") for one in told if one["victim"] == victim)
    message = replies["answer round", "site-5"]["vectors"]
    (view,) = (one["vectors"] for one in told if one["what"] == "view")
    # Of a step of rate 1 on one row: the change of an output's weights is the row times the change of its bias.
    weight, bias = (
        np.array(view[f"view/{name}"]) - np.array(message[name]) for name in ("linear/weight", "linear/bias")
    )
    errors = np.abs(training_rows(data, "site-5")[0] - weight[0] / bias[0]).max(axis=1)
    assert errors.min() < 1e-4
