import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.graphs import pairs
from idiolect.graphs.pairs import all_pairs, check_weight, of_pairs, pairs_at


@pytest.mark.parametrize("count", [2, 3, 11])
def test_the_nth_pair_is_the_nth_of_the_list(count):
    low, high = all_pairs(count)
    listed = [(k, m) for k in range(count) for m in range(k + 1, count)]
    assert list(zip(low, high, strict=True)) == listed
    found = pairs_at(np.arange(len(listed)), count)
    assert list(zip(*found, strict=True)) == listed


def test_a_list_of_pairs_too_long_to_keep_is_refused(monkeypatch):
    monkeypatch.setattr(pairs, "LARGEST", 30)
    assert of_pairs(*all_pairs(6), 1.0, 6).num_edges == 15
    with pytest.raises(ConfigError, match="all pairs of 7 clients are 21 edges, too many to keep; use star"):
        all_pairs(7)
    with pytest.raises(ConfigError, match="16 edges are too many"):
        of_pairs(np.arange(16), np.arange(1, 17), 1.0, 17)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_a_weight_must_be_positive(weight):
    with pytest.raises(ConfigError, match=r"weight = .* must be a finite number > 0"):
        check_weight(weight)
