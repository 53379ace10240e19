import pytest

from idiolect.core.errors import ConfigError
from idiolect.study.run.rounds import looked_at


def test_rounds_looked_at_end_with_the_last_and_grow() -> None:
    assert looked_at(1) == [1]
    assert looked_at(12) == [1, 2, 3, 4, 6, 9, 12]
    assert looked_at(40) == [1, 2, 3, 4, 6, 9, 14, 21, 32, 40]
    assert looked_at(21) == [1, 2, 3, 4, 6, 9, 14, 21]
    with pytest.raises(ConfigError, match="rounds = 0"):
        looked_at(0)
