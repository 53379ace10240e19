"""What a site allows."""

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.deploy.messages import Message
from idiolect.deploy.site.config import Allowed, SiteConfig
from idiolect.deploy.terms import Terms
from tests.deploy.test_terms import TERMS


def test_a_configuration_comes_back(tmp_path):
    config = SiteConfig(name="north", data={"table": "a.csv", "test": 0.5}, allow=Allowed(methods=("fedavg",)))
    config.save(tmp_path)
    assert SiteConfig.load(tmp_path) == config


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "is missing; make it with 'idiolect site init'"),
        ("name = ", "not valid TOML"),
        ('name = "a"', "data: Field required"),
        ('name = "a"\n[data]\n[allow]\nmethod = ["x"]', "allow.method: Extra inputs"),
        ('name = ""\n[data]', "name: String should have at least 1"),
    ],
)
def test_a_wrong_one_is_one_line(tmp_path, text, told):
    if text is not None:
        (tmp_path / "site.toml").write_text(text)
    with pytest.raises(ConfigError, match=told) as error:
        SiteConfig.load(tmp_path)
    assert "\n" not in str(error.value)


def test_only_what_is_allowed():
    allow = Allowed(methods=("pfedme",), neighbours=("b",), largest=8)
    with pytest.raises(DataError, match=r"method 'fedavg' is not allowed here \(allowed: pfedme\)"):
        allow.check_terms(Terms.model_validate(TERMS))
    Allowed().check_terms(Terms.model_validate(TERMS))
    allow.check_neighbour("b")
    with pytest.raises(DataError, match="site 'c' is not allowed as a neighbour"):
        allow.check_neighbour("c")
    allow.check_size(Message({}, {"w": np.zeros(2, np.float32)}), "it")
    with pytest.raises(DataError, match="it has 12 bytes; at most 8 are allowed"):
        allow.check_size(Message({}, {"w": np.zeros(3, np.float32)}), "it")
