"""A federation without samples."""

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.hub.server import unseen_data
from idiolect.deploy.kind import Kind
from tests import modalities
from tests.deploy.federation import data_of


def test_it_has_names_counts_and_shapes_and_no_sample():
    real = data_of()
    counts = {name: {"train": 3 + i, "test": 2} for i, name in enumerate(real.clients)}
    unseen = unseen_data(Kind.of(real), counts)
    assert (unseen.clients, unseen.task, unseen.classes) == (real.clients, real.task, real.classes)
    assert unseen.feature_shape == real.feature_shape
    assert unseen.train.sizes.tolist() == [3, 4, 5]
    assert (unseen.validation.count, unseen.test.count) == (0, 6)
    assert not np.any(unseen.train.client(0)[0])
    with pytest.raises(DataError, match="never stored together"):
        _ = unseen.train.x


def test_modalities_and_targets_are_those_of_the_kind():
    real = modalities.data_of()
    unseen = unseen_data(Kind.of(real), {name: {"train": 1} for name in real.clients})
    assert unseen.modalities == real.modalities


def test_a_site_without_training_samples_is_refused():
    with pytest.raises(DataError, match="site 'a' has no training samples"):
        unseen_data(Kind.of(data_of()), {"a": {"train": 0, "test": 3}})
