"""What is said to models of other libraries."""

import equinox as eqx
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from idiolect.core.errors import ConfigError
from idiolect.models.foreign import refuse_model


def of_library(module):
    """An object whose class pretends to be of a library that is not installed."""
    return type("Net", (type("Module", (), {"__module__": module}),), {"__module__": "mine"})()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (of_library("torch.nn.modules.module"), "not a Net of torch.nn; PyTorch's operations cannot be traced"),
        (of_library("flax.nnx.module"), r"not a Net of flax.nnx; wrap it: idiolect.models.from_flax\(model\)"),
        (of_library("flax.linen.module"), r"model.apply\(\{'params': params\}, x\[None\]\)\[0\], head=...\)$"),
        (of_library("keras.src.models"), "stateless_call"),
        (LogisticRegression(), "not a LogisticRegression of sklearn; .* 'mlr' or 'linear'"),
        (
            lambda x: x,
            r"not a function: a function has no parameters to train; idiolect.models.from_fun",
        ),
        (({"w": 1}, np.dot), r"not a pair; idiolect.models.from_functions\(params, apply\) makes one of it"),
        (eqx.nn.MLP, r"not the class MLP; make one of it first: MLP\(...\)"),
        (3, "such as 'mlr', not a int$"),
    ],
)
def test_it_says_what_is_missing_and_what_to_write(model, message):
    with pytest.raises(ConfigError, match=message):
        refuse_model(model)
