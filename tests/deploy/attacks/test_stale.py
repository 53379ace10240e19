"""S6: a round is asked again with the same vectors after another site has joined; the answer must be the new one."""

from pathlib import Path

import numpy as np
import pytest

from idiolect.deploy.messages import Message
from idiolect.deploy.site.approvals import approve
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.site import Site
from idiolect.deploy.study import Study
from tests.deploy.attacks.federation import attacked, call, study
from tests.deploy.federation import data_of, site_of
from tests.deploy.site.test_site import Nobody

pytestmark = pytest.mark.second
DATA = data_of()
VIEW = {"linear/weight": np.full((2, 3), 0.5, np.float32), "linear/bias": np.zeros(2, np.float32)}
COINS = np.array([0, 7], np.uint32)


def plain(message: Message | None) -> dict[str, bytes]:
    assert message is not None
    return {name: vector.tobytes() for name, vector in message.vectors.items()}


def test_the_answer_is_that_of_the_new_number_of_sites(tmp_path: Path) -> None:
    approved = study(DATA, {"name": "l2gd"}, late=["site-3"])
    first = {
        "params": {f"params/{name}": vector for name, vector in VIEW.items()},
        "view": {"view/coins": COINS, **{f"view/params/{name}": vector for name, vector in VIEW.items()}},
    }
    asked = [("begin", "params", 2), ("round", "view", 2), ("round", "view", 2), ("round", "view", 3)]
    calls = [
        {
            site: call(approved, DATA, task, number, first[part], clients=clients, site=index)
            for index, site in enumerate(("site-1", "site-2"))
        }
        for number, (task, part, clients) in enumerate(asked)
    ]
    plan: dict[str, tuple[Study, Floors]] = dict.fromkeys(("site-1", "site-2"), (approved, Floors.none()))
    got = attacked(tmp_path / "out", DATA, plan, calls, loose={"site-2": "request"})
    for site in plan:
        assert [got.refusal(number, site) for number in range(4)] == [""] * 4
        assert plain(got.answer(1, site)) == plain(got.answer(2, site)) != {}  # the cache of replies
    fresh = site_of(tmp_path / "fresh", DATA, "site-1", kind=Site)
    approve(fresh.folder, "site-1", approved)
    fresh.answer(call(approved, DATA, "begin", 0, first["params"], clients=3), "hub", Nobody())
    expected = fresh.answer(call(approved, DATA, "round", 1, first["view"], clients=3), "hub", Nobody())
    assert plain(got.answer(3, "site-1")) == plain(expected) != plain(got.answer(2, "site-1"))
    # A site that compares only vectors gives the old answer.
    assert plain(got.answer(3, "site-2")) == plain(got.answer(2, "site-2"))
