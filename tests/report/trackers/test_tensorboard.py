"""Event files, read back by TensorBoard's own reader."""

import shutil

import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.report.trackers.tracking import export, trackers_of
from idiolect.study.store.store import Store
from tests.report import stores

pytest.importorskip("tensorboardX")
reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def read(folder):
    found = reader.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0, "images": 0})
    return found.Reload()


def sent(folder, target):
    trackers = trackers_of(None, str(target))
    assert export(folder, trackers, final=True) == 2
    trackers[0].close()


def test_what_tensorboard_reads_of_a_run(folder, tmp_path):
    sent(folder, tmp_path)
    seen = read(tmp_path / "toy" / "cell0" / "fedavg" / "seed0")
    points = seen.Scalars("test/global/accuracy")
    assert [(point.step, round(point.value, 3)) for point in points] == [(0, 0.1), (20, 0.725)]
    assert {"train/global/loss", "method/gap"} <= {*seen.Tags()["scalars"]}
    text = seen.Tensors("settings/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "| method.rate | 0.1 |" in text
    report = read(tmp_path / "toy" / "report")
    assert report.Tags()["images"] == ["curves"]
    assert "# A report" in report.Tensors("report.md/text_summary")[0].tensor_proto.string_val[0].decode()


def test_the_same_again_writes_no_point_twice(folder, tmp_path):
    sent(folder, tmp_path)
    sent(folder, tmp_path)
    name, points = "test/global/accuracy", 0
    # File by file: of files of one second the reader of a folder may take the last alone.
    for file in (tmp_path / "toy" / "cell0" / "fedavg" / "seed0").glob("events.*"):
        seen = read(file)
        points += len(seen.Scalars(name)) if name in seen.Tags()["scalars"] else 0
    assert points == 2


def test_a_run_at_work_is_sent_as_far_as_it_is(folder, tmp_path):
    trackers = trackers_of(None, str(tmp_path))
    for _ in range(2):
        export(folder, trackers, final=False)
    trackers[0].close()
    seen = read(tmp_path / "toy" / "cell0" / "local" / "seed0")
    assert [point.step for point in seen.Scalars("test/local/accuracy")] == [10]


def test_the_folder_of_another_run_is_left_alone(folder, tmp_path):
    sent(folder, tmp_path / "events")
    other = shutil.copytree(folder, tmp_path / "other")
    with Store(other) as store, store._db.transaction() as db:
        db.execute("UPDATE runs SET config_hash = 'another'")
    with pytest.raises(StoreError, match="holds another run; use another --tensorboard"):
        sent(other, tmp_path / "events")


def test_without_the_library_one_line_with_the_command(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", None)
    with pytest.raises(ConfigError, match=r"pip install 'idiolect\[tensorboard\]'"):
        trackers_of(None, "events")


def test_a_sweeps_test_scores_come_after_its_validation_scores_of_the_same_round(tmp_path):
    with Store(tmp_path / "sweep") as store:
        exp = stores.experiment([{"name": "local"}], seeds=1)
        store.set_fact("experiment", exp.model_dump(mode="json"))
        run = stores.start(store, exp, "cell0", "local", 0)
        for split in ("validation", "test"):
            stores.record(store, run, 20, stores.local(0)[20], splits=(split,))
            store.finish(run, "done")
            trackers = trackers_of(None, str(tmp_path / "events"))
            export(tmp_path / "sweep", trackers, final=split == "test")
            trackers[0].close()
    points: dict[str, int] = {}
    for file in (tmp_path / "events" / "toy" / "cell0" / "local" / "seed0").glob("events.*"):
        seen = read(file)
        for name in seen.Tags()["scalars"]:
            points[name] = points.get(name, 0) + len(seen.Scalars(name))
    assert points.keys() >= {"validation/local/accuracy", "test/local/accuracy"}
    assert set(points.values()) == {1}
