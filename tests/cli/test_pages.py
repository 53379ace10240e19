"""Every name has a page, and every setting on it stands in its words."""

import json
import re

import pytest

from idiolect.algorithms.registry import build
from idiolect.cli import pages
from idiolect.core.errors import ConfigError
from idiolect.data import load
from idiolect.models import complete_spec

NAMES = sorted({(kind, name.split(" ")[0]) for kind, names in pages.LISTS.items() for name in names()})


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_every_setting_of_every_page_is_explained(kind, name):
    page = pages.PAGES[kind](name)
    assert len(page.text) > 50
    assert [key for key in page.settings if not re.search(rf"\b{key}\b", page.text)] == []
    assert bool(page.settings) == (kind not in ("experiments", "metrics"))
    json.dumps(page.settings)


def test_a_page_has_the_settings_that_are_taken_and_their_defaults():
    page = pages.method("fedrep")
    assert build({"name": "fedrep", **page.settings}) == build("fedrep")
    assert "FedRep: min over a representation" in page.text
    assert "Averaging: A method in which clients send what they trained" in page.text
    assert complete_spec({"name": "cnn", **pages.model("cnn").settings}) == complete_spec("cnn")
    given, few = pages.data("synthetic").settings, {"clients": 3, "max_size": 30}
    assert (given["clients"], given["max_size"]) == (100, None)
    assert load({"name": "synthetic", **given, **few}).fingerprint == load({"name": "synthetic", **few}).fingerprint
    assert pages.data("table").settings["path"] == pages.REQUIRED
    assert {"partition", "downsample", "concentration"} <= pages.data("mnist").settings.keys()


def test_an_experiments_page_has_its_protocols_and_cells():
    text = pages.experiment("pfedme/table1").text
    for words in ("--protocol as-published", "--protocol as-written", "mnist-paper-2020-dnn: pfedme"):
        assert words in text
    assert "--protocol" not in pages.experiment("fedu/fig3").text


@pytest.mark.parametrize("kind", pages.PAGES)
def test_an_unknown_name_is_refused(kind):
    with pytest.raises(ConfigError, match=r"unknown .* 'locl'"):
        pages.PAGES[kind]("locl")


def test_the_command_line_shows_a_page(commandline):
    code, out, _ = commandline("list", "methods", "fedper")
    assert code == 0
    assert "FedPer" in out
    assert re.search(r"head_init +model", out)
    assert re.search(r"for example: --set fedper\.\w+=\S+", out)
    code, out, _ = commandline("list", "models", "mlp", "--json")
    assert json.loads(out)["settings"]["hidden"] == [100]
    assert commandline("list", "methods", "fedpr")[2] == "error: unknown method 'fedpr'; did you mean 'fedper'?\n"


def test_a_metrics_page_says_which_way_is_better_and_how_it_is_read():
    auroc, mse = pages.metric("auroc").text, pages.metric("mse").text
    assert "For classification; higher is better." in auroc
    assert "Read in per cent" in auroc
    assert "only where they share their classes" in auroc
    assert "For regression; lower is better." in mse
    assert "per cent" not in mse
    with pytest.raises(ConfigError, match="unknown metric 'aurok'; did you mean 'auroc'"):
        pages.metric("aurok")
