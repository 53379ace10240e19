"""From the text of an option to a setting."""

from pathlib import Path

import pytest

from idiolect.cli.options import assignments, auto_model, data_spec, default_folder
from idiolect.core.errors import ConfigError
from idiolect.study.comparison import comparison_of


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (None, {}),
        (["rounds=50", "pfedme.rate=0.02"], {"rounds": 50, "pfedme.rate": 0.02}),
        (["a=true", "b=null", "c=[1, 2]", 'd={"x": 1}'], {"a": True, "b": None, "c": [1, 2], "d": {"x": 1}}),
        ([" key = some text ", "x==1"], {"key": "some text", "x": "=1"}),
        (["rounds=1", "rounds=2"], {"rounds": 2}),
        (["path="], {"path": ""}),
    ],
)
def test_values_are_json_where_they_can_be(pairs: list[str] | None, expected: dict[str, object]) -> None:
    assert assignments(pairs) == expected


@pytest.mark.parametrize("pair", ["rounds", "=5", " =5", ""])
def test_an_assignment_needs_a_key_and_a_value(pair: str) -> None:
    with pytest.raises(ConfigError, match=f"^--set {pair}: write key=value$"):
        assignments([pair])


def test_data_are_a_known_source_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_spec("synthetic", "client", "label") == ({"name": "synthetic"}, "synthetic")
    monkeypatch.chdir(tmp_path)
    table = {"name": "table", "client": "who", "label": "y"}
    for name in ("wards.csv", "wards.PARQUET", "wards.pq", "wards.tsv"):
        assert data_spec(name, "who", "y") == ({**table, "path": str(tmp_path / name)}, "wards")
    (tmp_path / "mnist").write_text("who,y\n")  # a file goes before a source of its name
    assert data_spec("mnist", "who", "y")[0]["path"] == str(tmp_path / "mnist")


@pytest.mark.parametrize(("name", "hint"), [("synthetc", "did you mean 'synthetic'"), ("table", "unknown data set")])
def test_other_data_are_refused(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"{hint}.*; or give the path of a CSV, TSV or Parquet file"):
        data_spec(name, "client", "label")


@pytest.mark.parametrize(("labels", "model"), [("0.5", "linear"), ("1", "mlr")])
def test_the_model_follows_from_the_labels(tmp_path: Path, labels: str, model: str) -> None:
    rows = [f"{client},{i},{labels if i % 2 else 0}" for client in "ab" for i in range(8)]
    (tmp_path / "t.csv").write_text("\n".join(["client,x,label", *rows]))
    spec, _ = data_spec(str(tmp_path / "t.csv"), "client", "label")
    assert auto_model(spec) == model
    assert auto_model({"name": "synthetic"}) == "mlr"


def test_the_folder_of_an_experiment_follows_from_its_settings() -> None:
    experiment = comparison_of("a/b", {"name": "synthetic"}, {"name": "mlr"}, ["local"], rounds=2)
    plain = default_folder(experiment, {})
    assert plain == Path("runs/compare-a-b")
    assert default_folder(experiment, {"seeds": 3}) == plain  # more seeds go on in the same folder
    one, two = (default_folder(experiment, {"rounds": rounds}) for rounds in (5, 6))
    assert one.name.startswith("compare-a-b-")
    assert len(one.name) == len("compare-a-b-") + 6
    assert one != two
    assert one == default_folder(experiment, {"rounds": 5, "seeds": 9})
