"""Read a pickled dictionary of arrays, texts and numbers without letting the file run code."""

import io
import pickle
import re
from typing import Any

import numpy as np
from jaxtyping import Shaped

from idiolect.core.errors import DataError


def load_dictionary(content: bytes, where: str) -> dict[Any, Any]:
    """Load a pickled dictionary of plain Python values and arrays of them, at any depth.

    A pickle names the functions that rebuild its objects. Here the few names that arrays need are mapped to the
    functions of this module; any other name raises `DataError` before anything is imported or called. Python 2
    texts are read as latin-1.
    """
    try:
        loaded = _Unpickler(io.BytesIO(content), where).load()
        if isinstance(loaded, dict):
            return _rebuilt(loaded, {})
    except DataError:
        raise
    except Exception as error:  # the bytes of a damaged pickle are a random program
        raise DataError(f"{where} is truncated, damaged or not a pickle ({error}); download it again") from error
    raise DataError(f"{where} holds a {type(loaded).__name__}, not a dictionary; download it again")


def _rebuilt(value: Any, converted: dict[int, Any]) -> Any:
    """The value with every `_Array` in it converted. converted: results by identity, since values are shared."""
    if id(value) not in converted:
        if isinstance(value, _Array):
            converted[id(value)] = value.array(converted)
        elif isinstance(value, dict):
            converted[id(value)] = {key: _rebuilt(item, converted) for key, item in value.items()}
        elif isinstance(value, list):
            converted[id(value)] = [_rebuilt(item, converted) for item in value]
        elif isinstance(value, tuple):
            converted[id(value)] = tuple(_rebuilt(item, converted) for item in value)
        else:
            return value
    return converted[id(value)]


class _Type:
    """Stands in for numpy.dtype: only numbers, texts and objects, and of the state only the byte order, since a
    crafted state of a real dtype can corrupt memory."""

    def __init__(self, name: str, *_: Any) -> None:
        if not re.fullmatch("[biuf][1248]|[SU][0-9]{1,6}|O8?", name):
            raise ValueError(f"an array of type {name!r}")
        self.name = name

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] not in ("<", ">", "=", "|"):
            raise ValueError(f"an array of byte order {state[1]!r}")
        self.name = state[1].replace("|", "") + self.name


class _Array:
    """Stands in for numpy.ndarray until the whole pickle is read."""

    def __init__(self, *_: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self, converted: dict[int, Any]) -> Shaped[np.ndarray, "..."]:
        """The array, in its own memory."""
        _, shape, dtype, columns_first, content = self.state
        if "O" in dtype.name:  # pickled as a list in C order, whatever the array's memory order was
            objects = np.empty(len(content), dtype=object)
            for place, item in enumerate(content):
                objects[place] = _rebuilt(item, converted)
            return objects.reshape(shape)
        values = content.encode("latin1") if isinstance(content, str) else content
        order = "F" if columns_first else "C"
        array = np.frombuffer(values, np.dtype(dtype.name)).reshape(shape, order=order).copy()
        if "U" in dtype.name:
            array.tolist()  # raises on an invalid character code
        return array


def _encode(text: str, encoding: str) -> bytes:
    """Replaces _codecs.encode, by which Python 3 pickles bytes for Python 2; only latin1 is used there."""
    if encoding != "latin1":
        raise ValueError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): None,  # only an argument of _reconstruct
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, where: str) -> None:
        super().__init__(file, encoding="latin1")
        self._where = where

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) not in _KNOWN:
            raise DataError(
                f"{self._where} is refused: it asks for {module_name}.{global_name}, but arrays and plain values "
                "need no such thing; the file was changed, or is another one"
            )
        return _KNOWN[module_name, global_name]
