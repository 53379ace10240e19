"""One client's model."""

import numpy as np
import pytest

import idiolect
from idiolect.core.errors import ConfigError
from idiolect.runtime.client_model import client_model
from idiolect.runtime.evaluate import Evaluator
from tests.federations import flat, quadratics, rows, run


def test_it_is_the_client_s_own_by_name_or_number():
    simulation = quadratics().simulation(idiolect.Local(rate=0.1, batch_size=0))
    state, evaluator = run(simulation, 2), Evaluator(simulation)
    for client in (2, "c2"):
        np.testing.assert_array_equal(flat(client_model(evaluator, state, "local", client)), rows(state.private)[2])
    for model, client, message in (
        ("lokal", 0, "did you mean 'local'"),
        ("local", "c9", "unknown client 'c9'"),
        ("local", 4, "client 4 is not one of 0..3"),
        ("local", -1, "client -1 is not one of 0..3"),
    ):
        with pytest.raises(ConfigError, match=message):
            client_model(evaluator, state, model, client)
