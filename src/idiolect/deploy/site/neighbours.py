"""Check the messages of neighbours: shapes, finite values, and scale.

This module imports no JAX: it runs in the process that talks to the network.
"""

from collections.abc import Mapping

import numpy as np

from idiolect.deploy.messages import Message, Vectors
from idiolect.deploy.norms import norm

SCALE = 10.0
"""Largest norm of a neighbour's message, as a multiple of the site's own or of the median, whichever is larger."""


def fitting(replies: Mapping[str, Message], own: Vectors) -> tuple[dict[str, Message], dict[str, str]]:
    """Return the messages that can be used, and why the others cannot.

    The reference of the scale is the norm of the site's own message. A site with a small model among large ones takes
    the lower median of its own and of all norms instead, if that is larger. So no minority of liars can raise it. Of
    two messages nobody knows which one is wrong, so the limit is then the scale squared, as at a hub.

    Args:
        replies: neighbour -> its message.
        own: the vectors that the site has sent to all of them.
    """
    good, refused = dict[str, Message](), dict[str, str]()
    expected = {name: (vector.shape, vector.dtype) for name, vector in own.items()}
    for name, reply in replies.items():
        if {leaf: (vector.shape, vector.dtype) for leaf, vector in reply.vectors.items()} != expected:
            refused[name] = "its message has other shapes"
        elif not all(bool(np.isfinite(v).all()) for v in reply.vectors.values() if v.dtype.kind == "f"):
            refused[name] = "its message holds NaN or infinity"
        else:
            good[name] = reply
    sizes = {name: _size(reply.vectors) for name, reply in good.items()}
    mine = _size(own)
    ordered = sorted([mine, *sizes.values()])
    scale = SCALE if len(ordered) > 2 else SCALE**2
    limit = scale * max(mine, ordered[(len(ordered) - 1) // 2])
    for name, size in sizes.items():
        if size > limit > 0:
            del good[name]
            refused[name] = f"its message is out of scale: norm {size:.3g}; the limit is {limit:.3g}"
    return good, refused


def _size(vectors: Vectors) -> float:
    return norm((vector, None) for vector in vectors.values() if vector.dtype.kind == "f")
