"""Read a pickled dictionary of arrays, texts and numbers without letting the file run code."""

import io
import pickle
import re
from typing import Any

import numpy as np
from jaxtyping import Shaped

from idiolect.core.errors import DataError


def load_dictionary(content: bytes, where: str) -> dict[Any, Any]:
    """The dictionary in a pickle whose values, at any depth, are plain Python values and arrays of these.

    Pickles name the functions that rebuild their objects. Here these names stand for a few small functions of our
    own, which rebuild arrays; any other name is refused before anything is imported or called. Texts of Python 2 are
    read as latin-1.
    """
    try:
        found = _Unpickler(io.BytesIO(content), where).load()
        if isinstance(found, dict):
            return _rebuilt(found, {})
    except DataError:
        raise
    except Exception as error:  # the bytes of a damaged pickle are a random program
        raise DataError(f"{where} is truncated, damaged or not a pickle ({error}); download it again") from error
    raise DataError(f"{where} holds a {type(found).__name__}, not a dictionary; download it again")


def _rebuilt(value: Any, made: dict[int, Any]) -> Any:
    """The value with every array in it made. made: what was, by identity: small files can share a value often."""
    if id(value) not in made:
        if isinstance(value, _Array):
            made[id(value)] = value.array(made)
        elif isinstance(value, dict):
            made[id(value)] = {key: _rebuilt(item, made) for key, item in value.items()}
        elif isinstance(value, list):
            made[id(value)] = [_rebuilt(item, made) for item in value]
        elif isinstance(value, tuple):
            made[id(value)] = tuple(_rebuilt(item, made) for item in value)
        else:
            return value
    return made[id(value)]


class _Type:
    """What stands for a numpy.dtype: only numbers, texts and objects, and no state but the byte order, for a crafted
    state of a real one may corrupt memory."""

    def __init__(self, name: str, *_: Any) -> None:
        if not re.fullmatch("[biuf][1248]|[SU][0-9]{1,6}|O8?", name):
            raise ValueError(f"an array of type {name!r}")
        self.name = name

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] not in ("<", ">", "=", "|"):
            raise ValueError(f"an array of byte order {state[1]!r}")
        self.name = state[1].replace("|", "") + self.name


class _Array:
    """What stands for a numpy.ndarray until the whole pickle is read."""

    def __init__(self, *_: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self, made: dict[int, Any]) -> Shaped[np.ndarray, "..."]:
        """The array, in its own memory."""
        _, shape, kind, columns_first, content = self.state
        if "O" in kind.name:  # a list of objects, the last index first, however the array lay in memory
            objects = np.empty(len(content), dtype=object)
            for place, item in enumerate(content):
                objects[place] = _rebuilt(item, made)
            return objects.reshape(shape)
        values = content.encode("latin1") if isinstance(content, str) else content
        order = "F" if columns_first else "C"
        array = np.frombuffer(values, np.dtype(kind.name)).reshape(shape, order=order).copy()
        if "U" in kind.name:
            array.tolist()  # fails where a code is no character
        return array


def _encode(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes into a pickle that Python 2 can read; it needs no codec but this one."""
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
