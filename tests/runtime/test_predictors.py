"""A method whose models are no parameters: a mixture, and neighbours in feature space. The runtime does not know."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.api.run import run
from idiolect.client.predictor import Predictor, Shared
from idiolect.runtime.evaluate import Evaluator
from tests.federations import classification

NEAREST = 3


class Mixed(eqx.Module):
    one: Any
    other: Any
    share: jax.Array

    def __call__(self, x):
        return self.share * jax.nn.softmax(self.one(x)) + (1 - self.share) * jax.nn.softmax(self.other(x))


class Mixture(Predictor):
    """share p_one + (1 - share) p_other, in probabilities."""

    one: Any
    other: Any
    share: jax.Array

    def bound(self, module):
        return Mixed(module(self.one), module(self.other), self.share)


class Voting(eqx.Module):
    """The votes of the nearest of a client's samples, where the hidden layer puts them."""

    model: Any
    places: jax.Array
    votes: jax.Array

    def __call__(self, x):
        distance = jnp.sum((self.places - hidden(self.model, x)) ** 2, axis=1)
        far = jnp.where(self.votes.sum(axis=1) > 0, distance, jnp.inf)
        return self.votes[jnp.argsort(far)[:NEAREST]].sum(axis=0)


class Neighbours(Predictor):
    params: Any
    places: jax.Array
    votes: jax.Array

    def bound(self, module):
        return Voting(module(self.params), self.places, self.votes)


def hidden(model, x):
    return jnp.tanh(model.first @ x + model.bias)


class Beyond(Averaging, Trainer):
    """FedAvg with a private model; its models are predictors, one of them shared by groups."""

    name: ClassVar[str] = "beyond"
    summary: ClassVar[str] = "test"
    source: ClassVar[str] = "test"
    model_names: ClassVar[tuple[str, ...]] = ("mixture", "neighbours", "global", "cluster")

    def init_private(self, start, key):
        return start.params

    def local(self, view, private, client, key):
        return self.train(view, client, key), self.train(private, client, key)

    def models(self, view, private, client, key):
        batch = client.take(jnp.arange(client.federation.capacity))
        places = jax.vmap(lambda x: hidden(view, x))(batch.x)
        votes = jax.nn.one_hot(batch.y, 3) * batch.weight[:, None]
        group = client.id % 2
        scaled = jax.tree.map(lambda w: w * (1 + group), view)
        return {
            "mixture": Mixture(view, private, jnp.asarray(0.3)),
            "neighbours": Neighbours(view, places, votes),
            "global": Shared(view),
            "cluster": Shared(Mixture(scaled, view, jnp.asarray(0.5)), group),
        }


SIZES = (9, 4, 30)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def logits(params, x):
    first, bias, second = (np.asarray(p, float) for p in (params.first, params.bias, params.second))
    return np.tanh(x @ first.T + bias) @ second.T


def voted(params, x, known, labels):
    """Votes of the nearest known samples, one sample after the other."""
    first, bias = np.asarray(params.first, float), np.asarray(params.bias, float)
    places = np.tanh(known @ first.T + bias)
    votes = np.zeros((len(x), 3))
    for row, place in enumerate(np.tanh(x @ first.T + bias)):
        for index in np.argsort(((places - place) ** 2).sum(axis=1), kind="stable")[:NEAREST]:
            votes[row, labels[index]] += 1
    return votes


@pytest.fixture(scope="module")
def trained():
    problem = classification(SIZES)
    simulation = problem.simulation(Beyond(rate=0.3, local_steps=3, batch_size=4))
    return problem, simulation, simulation.advance(simulation.init(0), 2)


def outputs(state, problem, index, name):
    """What the model of one client says on its test data, from the definition."""
    w = state.shared.params
    private = jax.tree.map(lambda leaf: leaf[index], state.private)
    x, _ = problem.data.test.client(index)
    if name == "mixture":
        return 0.3 * softmax(logits(w, x)) + 0.7 * softmax(logits(private, x))
    if name == "neighbours":
        return voted(w, x, *problem.data.train.client(index))
    if name == "global":
        return logits(w, x)
    scaled = jax.tree.map(lambda leaf: leaf * (1 + index % 2), w)
    return 0.5 * softmax(logits(scaled, x)) + 0.5 * softmax(logits(w, x))


@pytest.mark.second
def test_every_client_is_judged_by_what_its_predictor_says(trained):
    problem, simulation, state = trained
    scores = {score.model: score for score in Evaluator(simulation)(state)}
    assert tuple(scores) == Beyond.model_names
    for name, score in scores.items():
        for index in range(len(SIZES)):
            said = outputs(state, problem, index, name)
            y = problem.data.test.client(index)[1]
            losses = np.log(np.exp(said).sum(axis=1)) - said[np.arange(len(y)), y]
            np.testing.assert_allclose(score.loss[index], losses.mean(), rtol=1e-4, err_msg=name)
    assert len({tuple(np.round(score.loss, 6)) for score in scores.values()}) == 4


def test_a_predictor_of_one_client_is_a_model_to_call(trained):
    problem, *_ = trained
    module = problem.params
    finished = run(problem.data, module, Beyond(rate=0.3, local_steps=3, batch_size=4), rounds=2, eval_every=2)
    for name in Beyond.model_names:
        for index in range(len(SIZES)):
            x, _ = problem.data.test.client(index)
            said = jax.vmap(finished.client_model(name, index))(jnp.asarray(x))
            np.testing.assert_allclose(said, outputs(finished.state, problem, index, name), atol=1e-5)


@pytest.mark.second
def test_private_states_in_a_file_and_few_clients_change_nothing(trained, tmp_path):
    """Predictors are made in parts of the clients, and put together again."""
    _, simulation, state = trained
    on_disk = simulation.advance(simulation.init(0, rows=tmp_path / "rows"), 2)
    evaluator = Evaluator(simulation)
    for name in Beyond.model_names:
        ids = np.array([2, 0])
        some = evaluator.client_models(on_disk, (name,), ids)[name]
        every = evaluator.client_models(state, (name,))[name]
        assert jax.tree.structure(some) == jax.tree.structure(every)
        for a, b in zip(jax.tree.leaves(some), jax.tree.leaves(every), strict=True):
            np.testing.assert_allclose(a, np.asarray(b)[ids], atol=1e-6)
