"""The page's table: its form. That each line is what sites log is tested in deploy/test_transport.py."""

from idiolect.algorithms.registry import ALGORITHMS
from tests.deploy.leaves import CANNOT, HEAD, MODALITIES, parts, written

LINES = {line.split("`")[1]: line for line in written().removeprefix(HEAD).splitlines()}


def test_each_method_has_one_line():
    assert written().startswith(HEAD)
    assert len(LINES) == len(written().removeprefix(HEAD).splitlines())
    assert LINES.keys() == ALGORITHMS.keys() - CANNOT - MODALITIES


def test_layers_are_taken_together_and_all_else_stands_alone():
    two = {"params/layers/0/weight": (3, 2), "params/layers/0/bias": (3,), "params/layers/1/bias": (2,)}
    assert parts({**two, "loss": ()}) == [("params", "d"), ("loss", "1")]
    assert parts({"layers/0/weight": (3, 2)}) == [("", "d_first")]
    assert parts({"layers/1/weight": (3, 2)}) == [("", "d_last")]
    assert parts({"weight": (3, 2), "bias": (3,)}) == [("", "d")]
    assert parts({"value": (4, 2)}) == [("", "8")]
