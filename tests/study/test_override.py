import math

import pytest

from idiolect.core.errors import ConfigError
from idiolect.study.experiment import experiment_of
from idiolect.study.override import override
from tests.study.test_experiment import BASE


def test_override_reaches_experiment_cells_data_model_and_methods():
    changes = {
        "seeds": 4, "rounds": 9, "data.clients": 7, "model.l2": 0.5, "model.name": "mlp", "pfedme.rate": 0.5,
        "averaging.rate": 0.25,
    }  # fmt: skip
    found = override(experiment_of(BASE, "here"), changes)
    c = found.cells[0]
    assert (found.seeds, c.rounds) == (4, 9)
    assert c.data == {"name": "synthetic", "clients": 7}
    assert c.model == {"name": "mlp", "l2": 0.5}
    assert [m.spec.get("rate") for m in c.methods] == [0.5, 0.25, None]
    assert found.description.startswith("Changed with --set: rounds = 9, data.clients = 7")


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("ruonds", 3, "unknown key 'ruonds'; did you mean 'rounds'"),
        ("cells", 3, "unknown key 'cells'"),
        ("pfedmo.rate", 3, "unknown method 'pfedmo'; did you mean 'pfedme'"),
        ("pfedme.rat", 3, "did you mean 'rate'"),
        ("pfedme.rate", math.nan, "rate = nan"),
        ("data", 3, "data = 3"),
    ],
)
def test_override_refuses(key, value, match):
    with pytest.raises(ConfigError, match=match):
        override(experiment_of(BASE, "here"), {key: value})
