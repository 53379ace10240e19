"""Models: a small zoo by name, and what checks, initialises and saves any Equinox module.

Public is what `__all__` lists; the modules below this package are internal and may change.
"""

from idiolect.models.adapt import check_model, from_flax, from_functions
from idiolect.models.client_model import ClientModel, load_model
from idiolect.models.cnn import CNN
from idiolect.models.conv import Conv2d, convolve, max_pool
from idiolect.models.dense import MLP, LinearRegression, MultinomialLogistic
from idiolect.models.files import read_header, save_model
from idiolect.models.init import INITIALISATIONS, initialise
from idiolect.models.multimodal import Multimodal
from idiolect.models.registry import MODELS, build, complete_spec, describe_models, l2_of, loss_of

__all__ = [
    "CNN",
    "INITIALISATIONS",
    "MLP",
    "MODELS",
    "ClientModel",
    "Conv2d",
    "LinearRegression",
    "Multimodal",
    "MultinomialLogistic",
    "build",
    "check_model",
    "complete_spec",
    "convolve",
    "describe_models",
    "from_flax",
    "from_functions",
    "initialise",
    "l2_of",
    "load_model",
    "loss_of",
    "max_pool",
    "read_header",
    "save_model",
]
