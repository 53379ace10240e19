"""The functions of one site: with several cores, which divide its gradients, and with one."""

import json
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import start_of
from idiolect.algorithms.registry import build
from idiolect.client.samples import to_device
from idiolect.deploy.site.programs import Programs, RoundNumbers
from idiolect.runtime import devices
from tests.engine import devices_flags, python
from tests.federations import classification
from tests.tiers import second

METHODS = (
    {"name": "fedavg", "local_steps": 4, "batch_size": 0},
    {"name": "ditto", "local_steps": 4, "batch_size": 5},
    {"name": "pflego", "head": "second", "local_steps": 4},
)
BOTH = """
import json, sys
from tests.deploy.site.test_programs import rounds
print(json.dumps(rounds(sys.argv[1])))
"""


def rounds(spec: str) -> tuple[int | None, list[float]]:
    """(how many cores compute a round, the numbers of two rounds of a site of 30 rows)."""
    problem = classification((30,))
    programs = Programs(
        build(json.loads(spec)), problem.objective, start_of(problem.data, problem.params), (), 1.0, 8
    )
    place, seed = RoundNumbers(jnp.asarray(0), jnp.asarray(30.0)), jax.random.key(3)
    samples, state, found = to_device(problem.data.train), programs.begin(problem.params, place, seed), []
    with patch.object(devices, "WORTH", 1e-3):
        together = programs.devices.together
    for number in range(2):
        round = jnp.asarray(number, jnp.int32)
        message, private = programs.local(state["view"], state["private"], samples, place, round, seed)
        state["private"] = private
        found += [float(number) for leaf in jax.tree.leaves((message, private)) for number in np.ravel(leaf)]
    models = programs.made(state["view"], state["private"], samples, place, jnp.asarray(2, jnp.int32), seed)
    found += [float(number) for leaf in jax.tree.leaves(models) for number in np.ravel(leaf)]
    return together and together.devices, found


@pytest.mark.second
@pytest.mark.parametrize("method", [METHODS[0], *map(second, METHODS[1:])], ids=lambda method: method["name"])
def test_the_cores_of_a_site_compute_what_one_computes(method):
    done = python("-c", BOTH, json.dumps(method), XLA_FLAGS=devices_flags(3))
    assert done.returncode == 0, done.stderr[-2000:]
    together, found = json.loads(done.stdout)
    alone, expected = rounds(json.dumps(method))
    assert (together, alone) == (3, None)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)
