"""What to say to a model of another library, or to what is no model at all."""

from typing import Any, NoReturn

from idiolect.core.errors import ConfigError

_LIBRARIES = {
    "flax.nnx": "wrap it: idiolect.models.from_flax(model)",
    "flax.linen": "a linen module holds no parameters: idiolect.models.from_functions(model.init(key, x)['params'], "
    "lambda params, x: model.apply({'params': params}, x[None])[0], head=...)",
    "torch.nn": "PyTorch's operations cannot be traced by JAX: write it as an Equinox or Flax module",
    "haiku": "idiolect.models.from_functions(transformed.init(key, x), lambda params, x: "
    "transformed.apply(params, None, x), head=...)",
    "keras": "take its stateless call: idiolect.models.from_functions(weights, lambda weights, x: "
    "model.stateless_call(weights, [], x[None])[0][0])",
    "tensorflow": "TensorFlow's operations cannot be traced by JAX: write it as an Equinox or Flax module",
    "sklearn": "scikit-learn's estimators are not trained by gradients: take 'mlr' or 'linear' for a linear model, "
    "'mlp' for a network",
}


def refuse_model(model: Any) -> NoReturn:
    """Raise the `ConfigError` that says what is missing for this to be a model, and what to write."""
    kind = model if isinstance(model, type) else type(model)
    start = "a model must be an equinox.Module, or a name or specification such as 'mlr'"
    if isinstance(model, type):
        raise ConfigError(f"{start}, not the class {kind.__name__}; make one of it first: {kind.__name__}(...)")
    for library, advice in _LIBRARIES.items():
        if any(f"{ancestor.__module__}.".startswith(f"{library}.") for ancestor in kind.__mro__):
            raise ConfigError(f"{start}, not a {kind.__name__} of {library}; {advice}")
    if isinstance(model, tuple | list) and len(model) == 2 and callable(model[1]):
        raise ConfigError(f"{start}, not a pair; idiolect.models.from_functions(params, apply) makes one of it")
    if callable(model):
        raise ConfigError(
            f"{start}, not a {kind.__name__}: a function has no parameters to train; "
            "idiolect.models.from_functions(params, apply) makes a model of both"
        )
    raise ConfigError(f"{start}, not a {kind.__name__}")
