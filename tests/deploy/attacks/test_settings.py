"""S2 and S3: what a hub takes out of a site by the settings of its experiment, or out of a site with few rows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from idiolect.deploy.messages import Message
from idiolect.deploy.site.floors import Floors
from tests.deploy.attacks.federation import Answers, attacked, call, study, table, training_rows

pytestmark = pytest.mark.second
FEATURES, RATE = 30, 0.002
VIEW = {"linear/weight": np.zeros((2, FEATURES), np.float32), "linear/bias": np.zeros(2, np.float32)}
ONE_ROW = {"batch_size": 1, "local_steps": 1, "batches": "cyclic", "rate": RATE}


def under(part: str) -> dict[str, np.ndarray]:
    return {f"{part}/{name}": vector for name, vector in VIEW.items()}


def inverted(answer: Message, row: int = 0) -> np.ndarray:
    """x = dW / db of one output."""
    weight, bias = ((VIEW[name] - answer.vectors[name]).astype("f8") for name in ("linear/weight", "linear/bias"))
    return weight[row] / bias[row]


def stolen(answers: Answers, site: str, rows: np.ndarray) -> set[int]:
    """The rows of the site that some answer reveals by x = dW / db."""
    found = set[int]()
    for folder in sorted(answers.folder.iterdir()):
        message = answers.answer(int(folder.name), site)
        if message is not None and "linear/weight" in message.vectors:
            error = np.abs(rows - inverted(message)).max(axis=1)
            found |= {int(error.argmin())} if error.min() < 0.01 else set()
    return found


def test_settings_of_the_hub_s_file_give_no_row(tmp_path: Path) -> None:
    """S2: 178 rounds of one step on one row, in a fixed order."""
    data = table([275, 275, 275])
    evil, honest = (study(data, {"name": "fedavg", **settings}) for settings in (ONE_ROW, {}))
    rounds = len(training_rows(data, "site-1")[1])
    assert rounds == 178
    plan = {"site-1": (evil, Floors()), "site-2": (honest, Floors.none()), "site-3": (evil, Floors.none())}
    calls = [
        {
            site: call(
                approved, data, task, number, under(part), ONE_ROW, site=int(site[-1]) - 1, round=max(number - 1, 0)
            )
            for site, (approved, _) in plan.items()
        }
        for number, (task, part) in enumerate([("begin", "params"), *[("round", "view")] * rounds])
    ]
    got = attacked(tmp_path / "out", data, plan, calls)

    floor = "site 'site-1' refuses: floors.rows_per_step = 10, but a gradient step has 1 row; "
    other = "site 'site-2' refuses: study attack-00000001, run t/attack/seed0: method.batch"
    for number in range(rounds + 1):
        assert got.refusal(number, "site-1").startswith(floor), number
        assert got.refusal(number, "site-2").startswith(other), number
        assert got.refusal(number, "site-3") == "", number
    for site in ("site-1", "site-2"):
        assert stolen(got, site, training_rows(data, site)[0]) == set()
        assert len(got.sent(site)) == rounds + 1
        assert sum(line["bytes"] for line in got.sent(site)) == 0
    # Without floors, and with the approval of these very settings, every row comes out: the attack works.
    assert stolen(got, "site-3", training_rows(data, "site-3")[0]) == {*range(rounds)}


def test_a_site_of_one_row_or_one_class_sends_nothing(tmp_path: Path) -> None:
    """S3: ordinary settings; x = dW / db is the row, or the mean of the rows of the class."""
    data = table([2, 275, 2, 275])
    split, offsets = data.stored("train"), data.stored("train").offsets
    labels = split.y.copy()
    for client in (1, 3):
        labels[int(offsets[client]) : int(offsets[client + 1])] = 0
    data = replace(data, train=type(split)(split.x, labels, split.offsets, split.outputs))
    approved = study(data, {"name": "fedsgd"})
    plan = {site: (approved, Floors() if site in ("site-1", "site-2") else Floors.none()) for site in data.clients}
    tasks = [("join", ""), ("begin", "params"), ("round", "view"), ("evaluate", "view")]
    calls = [
        {
            site: call(
                approved,
                data,
                task,
                number,
                under(part) if part else None,
                site=index,
                names=["global"] if task == "evaluate" else [],
            )
            for index, site in enumerate(data.clients)
        }
        for number, (task, part) in enumerate(tasks)
    ]
    got = attacked(tmp_path / "out", data, plan, calls)

    for site, line in (
        ("site-1", "floors.rows = 10, but the site has 1 training row"),
        ("site-2", "floors.classes = 2"),
    ):
        for number, (task, _) in enumerate(tasks):
            refusal = got.refusal(number, site)
            begun = task in ("round", "evaluate")  # of a run that was refused before
            assert ("it must begin" if begun else line) in refusal, (task, refusal)
        assert all(line["vectors"] == {} and "error" in line["header"] for line in got.sent(site))
        assert not [*(got.kits.sites[site].site / "models").rglob("*")]
    (row,), mean = training_rows(data, "site-3")[0], training_rows(data, "site-4")[0].mean(axis=0)
    for site, secret in (("site-3", row), ("site-4", mean)):  # no floors: the attack works
        answer = got.answer(2, site)
        assert answer is not None
        np.testing.assert_allclose(inverted(answer), secret, atol=1e-4)
