"""Names inside sentences: whatever a name holds, the words around it stay as they are."""

import re

LONGEST = 60
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069\0]")
"""Marks that turn or isolate the direction of the text after them, and NUL."""


def isolated(name: str) -> str:
    """A name for a sentence: on one line, cut if it is very long, and with a direction of its own."""
    plain = " ".join(_TURNS.sub("", name).split()) or "(no name)"
    short = plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"
    return f"\u2068{short}\u2069"
