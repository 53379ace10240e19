"""What all methods with a private head share: the parts, how a head starts, and its training with the body held."""

import equinox as eqx
import jax
import numpy as np
import pytest

from idiolect.algorithms.base import remarks_of
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedper import FedPer, LGFedAvg
from idiolect.algorithms.fedrep import FedRep
from idiolect.algorithms.parts.body_head import train_head
from idiolect.algorithms.parts.solvers import sgd
from idiolect.algorithms.pflego import PFLEGO
from idiolect.client.features import on_features
from idiolect.client.objective import objective_of
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.models.dense import MLP, MultinomialLogistic
from idiolect.runtime.simulate import Simulation
from tests import parted
from tests.federations import flat, rows, start_with


def simulation(head_init, **changes):
    """Clients with an MLP of two layers, whose output layer is the head."""
    data = parted.problem().data
    model = MLP(3, (4,), 3, key=jax.random.key(2))
    objective = objective_of(model, "classification")
    return Simulation(data, objective, model, PFLEGO(head_init=head_init, **changes)), model


def test_by_default_all_clients_start_with_the_models_own_last_layer():
    sim, model = simulation("model")
    state = sim.init(0)
    np.testing.assert_array_equal(rows(state.private), np.tile(flat(model.layers[1]), (4, 1)))
    np.testing.assert_array_equal(flat(state.shared.params), flat(model.layers[0]))


@pytest.mark.parametrize("name", ["uniform", "pytorch", "orthogonal", "zeros", "stax"])
def test_each_client_draws_its_own_head_from_its_own_key(name):
    sim, model = simulation(name)
    state, again, other = sim.init(0), sim.init(0), sim.init(1)
    heads = rows(state.private)
    np.testing.assert_array_equal(heads, rows(again.private))
    np.testing.assert_array_equal(flat(state.shared.params), flat(model.layers[0]))
    weight = np.asarray(state.private.layers[1].weight)
    if name == "zeros":
        assert not heads.any()
        return
    assert not (rows(other.private) == heads).all(axis=1).any()
    assert len(np.unique(weight[:, 0, 0])) == 4
    if name == "uniform":
        assert heads.min() >= 0
        assert 0.9 < heads.max() < 1
    elif name == "pytorch":
        assert np.abs(heads).max() <= 1 / 2
        assert heads.min() < -0.4
    elif name == "stax":
        assert np.abs(state.private.layers[1].bias).max() < 0.05
        assert np.abs(weight).max() > 0.5
    else:
        np.testing.assert_allclose(weight @ weight.transpose(0, 2, 1), np.tile(np.eye(3), (4, 1, 1)), atol=1e-5)


@pytest.mark.parametrize("method", [PFLEGO, FedPer, FedRep])
def test_a_clients_head_depends_on_its_own_stream_only(method):
    """Neither on the other clients nor on the order in which heads are made."""
    data = parted.problem().data
    model = MLP(3, (4,), 3, key=jax.random.key(2))
    algorithm = method(head_init="uniform")
    sim = Simulation(data, objective_of(model, "classification"), model, algorithm)
    heads = rows(sim.init(5).private)
    start = start_with(eqx.filter(model, eqx.is_inexact_array))
    for client in (3, 0, 2, 1):
        alone = algorithm.init_private(start, stream(jax.random.key(5), "private", 0, client))
        np.testing.assert_allclose(heads[client], flat(alone), rtol=1e-6)


def test_a_head_that_cannot_start_so_is_refused():
    with pytest.raises(ConfigError, match="'zeros' cannot train MLP: of its 2 layers"):
        simulation("zeros", head="all")[0].init(0)
    problem = parted.problem()
    with pytest.raises(ConfigError, match="Tanh has no Linear or convolution layer to initialise by 'uniform'"):
        problem.simulation(PFLEGO(head=parted.HEAD, head_init="uniform")).init(0)
    with pytest.raises(ConfigError, match="fedper: head_init = 'ones' is not one of 'model', 'pytorch'"):
        FedPer(head_init="ones")


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"steps": 3, "batch_size": 0}, True),
        ({"steps": 1, "batch_size": 0}, False),
        ({"steps": 3, "batch_size": 4}, False),
        ({"steps": 3, "batch_size": 4, "epochs": 2}, True),
        ({"steps": 3, "batch_size": 4, "epochs": 1}, False),
    ],
)
def test_features_are_kept_where_samples_come_again_and_change_nothing(options, kept, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "idiolect.algorithms.parts.body_head.on_features", lambda *args: calls.append(0) or on_features(*args)
    )
    problem = parted.problem()
    (body, head), client = parted.start(problem), problem.client(0)

    @jax.jit
    def both(body, head):
        got = train_head(client, body, head, parted.KEY, rate=0.3, **options)
        return got, sgd(client, head, parted.KEY, rate=0.3, fixed=body, **options)

    got, expected = both(body, head)
    assert bool(calls) == kept
    np.testing.assert_allclose(flat(got), flat(expected), atol=1e-6)
    assert np.abs(flat(got) - flat(head)).max() > 0.03


def test_a_model_that_makes_the_method_another_one_is_told():
    models = MLP(3, (4,), 3, key=jax.random.key(2)), MultinomialLogistic(3, 3, key=jax.random.key(2))
    deep, linear = (eqx.filter(model, eqx.is_inexact_array) for model in models)
    assert FedPer().remarks(deep) == LGFedAvg().remarks(deep) == remarks_of(FedAvg(), linear) == ()
    assert "local training" in FedPer().remarks(linear)[0]
    assert "all shared" in LGFedAvg().remarks(linear)[0]
    assert "all shared" in FedPer(head="none").remarks(deep)[0]
