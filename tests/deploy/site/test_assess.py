"""The administrator's own look at a study: in the trainer's process, and nothing is sent."""

import json

import pytest

from idiolect.core.errors import ConfigError
from idiolect.deploy.kind import Kind
from idiolect.deploy.site.assess import assessed
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.data import save_arrays
from idiolect.deploy.study import Study
from tests.deploy.site.test_extraction import DATA, S2


def study_of(*methods, kind=None):
    runs = [
        {
            "run": f"c/{place}/seed0",
            "method": method,
            "model": {"name": "mlr"},
            "seed": 0,
            "rounds": 5,
            "metric": {"classification": "accuracy"},
            "splits": ("test",),
            "evaluations": 1,
        }
        for place, method in enumerate(methods)
    ]
    return Study(
        id="t-00000000",
        experiment={},
        sites=DATA.clients,
        smallest_cohort=3,
        rounds=5,
        evaluations=1,
        again=0,
        kind=kind or Kind.of(DATA).to_dict(),
        table={},
        runs=runs,
        travels={f"c/{place}": {"receives": (), "sends": ()} for place in range(len(methods))},
    )


def site(folder):
    save_arrays(folder / "own.data", DATA, DATA.clients.index("west"))
    SiteConfig(name="west", data={"arrays": "own.data"}).save(folder)
    return folder


@pytest.mark.second
def test_a_line_for_each_method_of_a_study(tmp_path, commandline):
    folder = site(tmp_path)
    study = study_of(S2, {"name": "local"})
    before = sorted(path.name for path in folder.iterdir())
    (first, one), (second, other) = assessed(study, folder)
    assert (first, one.found, one.step) == ("c/0", 5, 1)
    assert (second, other.verdict) == ("c/1", "nothing is sent")
    assert sorted({path.name for path in folder.iterdir()} - {"cache"}) == before
    study.save(tmp_path / "study.json")
    code, out, err = commandline("site", "risk", str(tmp_path / "study.json"), str(folder), "--json")
    assert code == 0, err
    assert [run["found"] for run in json.loads(out)["runs"]] == [5, 0]
    code, out, err = commandline("site", "risk", str(tmp_path / "study.json"), str(folder))
    assert "c/0: reveals 5 of 178 training rows" in out
    assert "floors.rows_per_step = 10" in out


def test_a_folder_of_no_site_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="is missing"):
        [*assessed(study_of(S2), tmp_path)]
