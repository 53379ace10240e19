"""Find the columns of a CSV file in which numbers have leading zeros: 007 is a name, and to pandas it is 7."""

import numpy as np
from jaxtyping import Bool, Int, UInt8

_STEP = 2**18
"""Bytes that are looked through at a time: they stay in the processor's cache."""

_SIGN = np.isin(np.arange(256), list(b"+-"))
_BEFORE = np.isin(np.arange(256), list(b',;|\t"\r\n'))
_AFTER = _BEFORE | np.isin(np.arange(256), list(b" \v\f"))
_DIGIT = np.isin(np.arange(256), list(b"0123456789"))
_SPACE = ord(" ")


def columns_of_codes(content: bytes | memoryview, separator: str) -> set[int] | None:
    """Return the places of columns that may hold a whole number with a leading zero, such as 007 or -01.

    No column that holds one is left out. None: codes were found, but not their columns, since the file has quotes or
    lines that end in several ways; then any column may hold them.

    Args:
        content: The file in an encoding that writes ASCII characters as single bytes, such as UTF-8.
        separator: The character between the values of a line.
    """
    found = _codes(content)
    if not len(found):
        return set()
    content = bytes(content)
    lone = content.count(b"\r") - content.count(b"\r\n")
    end = b"\n" if lone == 0 else b"\r"
    if b'"' in content or (lone and b"\n" in content):
        return None
    cut = separator.encode()
    return {content.count(cut, content.rfind(end, 0, place) + 1, place) for place in found.tolist()}


def _codes(content: bytes | memoryview) -> Int[np.ndarray, "_"]:
    """The place of each value's first zero, where the value is a code; the header's first value does not count."""
    text = np.frombuffer(content, np.uint8)
    found: list[Int[np.ndarray, "_"]] = []
    for begin in range(1, len(text) - 1, _STEP):
        end = min(begin + _STEP, len(text) - 1)
        before, here, after = text[begin - 1 : end - 1], text[begin:end], text[begin + 1 : end + 1]
        # Bytes wrap around: below 10 are digits, below 12 are also the point and the slash, which numbers contain.
        zeros = (here == ord("0")) & (after - np.uint8(ord("0")) < 10) & (before - np.uint8(ord(".")) >= 12)
        places = np.flatnonzero(zeros) + begin
        if len(places):
            places = places[_begins(text, places)]
            found.append(places[_ends(text, places)])
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _begins(text: UInt8[np.ndarray, "bytes"], places: Int[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    """Whether a value begins at each place, up to spaces and one sign before it."""
    before = places - 1
    before -= _SIGN[text[before]] & (before >= 0)
    while (spaces := (before >= 0) & (text[before] == _SPACE)).any():
        before -= spaces
    return (before < 0) | _BEFORE[text[before]]


def _ends(text: UInt8[np.ndarray, "bytes"], places: Int[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    """Whether nothing but digits follows each place until the value ends."""
    last, after = len(text) - 1, places + 1
    while (digits := (after <= last) & _DIGIT[text[np.minimum(after, last)]]).any():
        after = after + digits
    return (after > last) | _AFTER[text[np.minimum(after, last)]]
