"""A mixed-effects logistic model: clients share slopes, deviate from them a little, and have their own base rate.

The model is that of statistics for grouped data (Laird and Ware, "Random-Effects Models for Longitudinal Data",
Biometrics 1982; with a logit link: Breslow and Clayton, JASA 1993). Real federations of small tables look like this.
"""

import numpy as np

from idiolect.core.errors import require
from idiolect.core.memory import check_fits
from idiolect.core.plugins import named
from idiolect.core.settings import MOST
from idiolect.data.divide.division import check_fractions
from idiolect.data.federated import FederatedData
from idiolect.data.sets.synthetic import as_generated


@named("mixed-effects", task="classification")
def mixed_effects(
    clients: int = 40,
    seed: int = 0,
    *,
    features: int = 20,
    fewest: int = 60,
    most: int = 150,
    shared: float = 0.6,
    deviation: float = 0.3,
    intercept: float = 1.5,
    test: float = 0.25,
    validation: float = 0.0,
    split_seed: int = 0,
) -> FederatedData:
    """Clients with few rows and something in common: two classes, a logistic model with random slopes and intercepts.

    P(y = 1 | x) = 1 / (1 + exp(-(x . (w + u_i) + b_i))), w ~ N(0, shared²), u_i ~ N(0, deviation²), b_i ~ N(0,
    intercept²), x ~ N(0, I); client i has fewest to most samples, each number equally likely.

    Args:
        features: The length of x.
        shared: The standard deviation of the slopes w that all clients share.
        deviation: The standard deviation of a client's own slopes u_i around w.
        intercept: The standard deviation of a client's own intercept b_i, which sets its base rate.
    """
    for what, value in (("shared", shared), ("deviation", deviation), ("intercept", intercept)):
        require(0 <= value < float("inf"), f"{what} must not be negative, it is {value}")
    require(0 <= seed < 2**32, f"seed must lie between 0 and 2^32 - 1, it is {seed}")
    require(clients >= 1, f"clients must be at least 1, it is {clients}")
    require(1 <= features <= MOST, f"features must lie between 1 and {MOST:,}, it is {features}")
    require(10 <= fewest <= MOST, f"fewest must lie between 10 and {MOST:,}, it is {fewest}")
    require(fewest <= most <= MOST, f"most must lie between fewest ({fewest}) and {MOST:,}, it is {most}")
    check_fractions(test, validation)
    require(split_seed >= 0, f"split_seed must not be negative, it is {split_seed}")
    check_fits(clients * fewest * (features + 1) * 8, f"{clients:,} clients of {fewest:,} rows; use fewer")
    # The order of the draws defines the data set: do not change it.
    random = np.random.Generator(np.random.PCG64(seed))
    sizes = random.integers(fewest, most, clients, endpoint=True)
    slopes = random.normal(0, shared, features) + random.normal(0, deviation, (clients, features))
    intercepts = random.normal(0, intercept, clients)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(clients), sizes)
    x = random.standard_normal((offsets[-1], features))
    positive = 1 / (1 + np.exp(-(np.sum(x * slopes[owner], axis=1) + intercepts[owner])))
    y = (random.random(offsets[-1]) < positive).astype(np.int32)
    x = x.astype(np.float32)
    best = np.maximum(positive, 1 - positive).mean()
    arguments = {
        "clients": clients,
        "seed": seed,
        "features": features,
        "fewest": fewest,
        "most": most,
        "shared": shared,
        "deviation": deviation,
        "intercept": intercept,
        "test": test,
        "validation": validation,
        "split_seed": split_seed,
    }
    name = f"mixed-effects({deviation:g}, {intercept:g})"
    note = f"the model that made the labels is right for {100 * best:.1f} % of such rows: no model is better"
    return as_generated("mixed-effects", arguments, x, y, offsets, name=name, classes=2, notes=(note,))
