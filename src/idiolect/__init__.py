"""idiolect: personalized federated learning in JAX. Every client ends with its own model.

Public is what this package, `idiolect.data`, `idiolect.graphs` and `idiolect.models` export in `__all__`, and the
scikit-learn estimators in `EXTRA`. The methods are among the names: each
class of `idiolect/algorithms/` that has one. A name is loaded when it is first used: a process that only carries
messages loads no JAX. All other modules are internal and may change.

`__init__.pyi` tells type checkers the same; `make format` writes it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

__version__ = "0.1.0"

HOMES = {
    "idiolect.algorithms.base": "Algorithm Cohort",
    "idiolect.api": "Advice Comparison Combined Run SweepResult advise combine compare run sweep",
    "idiolect.api.combined_estimators": "CombinedClassifier CombinedRegressor",
    "idiolect.api.estimators": "PersonalizedClassifier PersonalizedRegressor",
    "idiolect.client.client": "Client",
    "idiolect.core.errors": "ConfigError DataError DivergedError IdiolectError StoreError",
    "idiolect.data.federated": "FederatedData",
    "idiolect.models": "load_model save_model",
    "idiolect.runtime.devices": "use_cores",
    "idiolect.runtime.split_learning": "SplitRun",
}
"""Where the public names lie that are no methods; the estimators are public, too, and need scikit-learn."""
PACKAGES = ("data", "graphs", "models")
EXTRA = ("CombinedClassifier", "CombinedRegressor", "PersonalizedClassifier", "PersonalizedRegressor")
_HOME_OF = {name: home for home, names in HOMES.items() for name in names.split()}


def _methods() -> dict[str, Any]:
    return {cls.__name__: cls for cls in import_module("idiolect.algorithms.registry").OWN.values()}


def __getattr__(name: str) -> Any:
    """A public name or a package, loaded now. Raises `ConfigError` for the estimators without scikit-learn."""
    if name == "__all__":
        return sorted([*PACKAGES, *_methods(), *(one for one in _HOME_OF if one not in EXTRA)])
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif not name.startswith("_") and find_spec(f"idiolect.{name}") is not None:
        return import_module(f"idiolect.{name}")
    elif not name[:1].isupper() or (value := _methods().get(name)) is None:
        raise AttributeError(f"module 'idiolect' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__getattr__("__all__"), *EXTRA])
