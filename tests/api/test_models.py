"""Every client's model by name."""

import equinox as eqx
import jax
import pytest

from idiolect.api.models import ClientModels
from idiolect.core.errors import ConfigError


def test_it_is_a_mapping_that_builds_only_what_is_asked_for():
    built = []

    def build(client):
        built.append(client)
        return eqx.nn.Linear(1, 1, key=jax.random.key(len(built)))

    models = ClientModels(["a", "b", "c"], build)
    assert (list(models), len(models), built) == (["a", "b", "c"], 3, [])
    assert isinstance(models["b"], eqx.nn.Linear)
    assert "c" in models
    assert built == ["b"]
    assert models.get("d") is None
    assert "3 clients" in repr(models)
    with pytest.raises(ConfigError, match=r"^unknown client 'd'; there are 3, such as 'a'$"):
        models["d"]
