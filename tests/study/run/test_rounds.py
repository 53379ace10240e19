import pytest

from idiolect.core.errors import ConfigError
from idiolect.study.run.rounds import all_settled, looked_at, settled


def test_rounds_looked_at_end_with_the_last_and_grow() -> None:
    assert looked_at(1) == [1]
    assert looked_at(12) == [1, 2, 3, 4, 6, 9, 12]
    assert looked_at(40) == [1, 2, 3, 4, 6, 9, 14, 21, 32, 40]
    assert looked_at(21) == [1, 2, 3, 4, 6, 9, 14, 21]
    with pytest.raises(ConfigError, match="rounds = 0"):
        looked_at(0)


def test_a_loss_has_settled_when_three_evaluations_do_not_fall_by_a_thousandth() -> None:
    assert not settled([1.0, 1.0, 1.0])
    assert settled([1.0, 1.0, 1.0, 1.0])
    assert settled([1.0, 2.0, 2.0, 0.9991])
    assert not settled([1.0, 2.0, 2.0, 0.998])
    assert not settled([2.0, 1.9, 1.8, 1.7, 1.6])
    assert settled([0.5, 0.6, 0.7, 0.8])


def test_a_run_is_over_when_all_its_models_have_settled() -> None:
    flat, falling = [1.0] * 4, [4.0, 3.0, 2.0, 1.0]
    assert all_settled({"global": flat, "personal": flat})
    assert not all_settled({"global": flat, "personal": falling})
    assert not all_settled({})
