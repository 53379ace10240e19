from collections.abc import Sequence

import numpy as np
import pytest

from idiolect.study.advice.policies import (
    BY_SIZE,
    CHOSEN,
    FEWEST_ROWS,
    FOLDS,
    KIND,
    PORTFOLIO,
    by_size,
    choices_of,
    first_of,
    policy,
    portfolio,
    preferred,
)
from idiolect.study.advice.scored import Candidate


def test_a_client_leaves_the_default_only_for_a_gain_beyond_what_the_largest_of_all_reaches_by_chance() -> None:
    """The gains' standard error is sqrt(1.2 / 6) = 0.447; sqrt(2 ln 2) = 1.177, sqrt(2 ln 3) = 1.482."""
    noise = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    default = np.zeros(6)
    for models, limit in ((2, 0.5266), (3, 0.6629)):
        others = [default + 9] * (models - 2)
        assert preferred(np.stack([default - limit + 0.001 + noise, default, *others]))[1] == 1
        assert preferred(np.stack([default - limit - 0.001 + noise, default, *others]))[1] == 0


def test_each_model_is_a_default_of_its_own() -> None:
    losses = np.stack([np.full(6, loss) for loss in (3.0, 1.0, 2.0)])
    np.testing.assert_array_equal(preferred(losses), [1, 1, 1])
    noise = np.array([[1.0, -1, 1, -1, 1, -1], [1, 1, -1, -1, 0, 0], [0, 0, 1, 1, -1, -1]])
    np.testing.assert_array_equal(preferred(losses / 100 + noise), [0, 1, 2])


def test_a_few_rows_or_one_model_say_nothing() -> None:
    losses = np.stack([np.zeros(FEWEST_ROWS), np.full(FEWEST_ROWS, 9.0)])
    np.testing.assert_array_equal(preferred(losses), [0, 0])
    np.testing.assert_array_equal(preferred(losses[:, 1:]), [0, 1])
    np.testing.assert_array_equal(preferred(np.zeros((2, 0))), [0, 1])
    np.testing.assert_array_equal(preferred(np.zeros((1, 30))), [0])


def test_each_client_has_the_model_that_its_own_rows_prefer() -> None:
    owners = np.repeat([0, 1], [5, 6])
    losses = np.stack([np.array([1.0, 9.0])[owners], np.full(11, 5.0)])
    np.testing.assert_array_equal(portfolio(2)(losses, owners), [0, 1])


@pytest.mark.parametrize(("own", "default"), [(4.0, 0), (6.0, 1)])
def test_the_default_of_a_portfolio_is_that_with_the_least_loss_of_all_rows(own: float, default: int) -> None:
    """The second client has four rows, too few to choose: it has what the default is. The first one chooses 0."""
    owners = np.repeat([0, 1], [5, FEWEST_ROWS - 1])
    losses = np.stack([np.array([1.0, own])[owners], np.array([2.0, 5.0])[owners]])
    np.testing.assert_array_equal(portfolio(2)(losses, owners), [0, default])


def by_clients(means: Sequence[Sequence[float]], sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """(losses, owners) of models with one loss for all rows of a client."""
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return np.asarray(means)[:, owners], owners


def test_by_size_federates_the_clients_below_the_limit_with_the_least_loss() -> None:
    """Sums of gains over clients of 5, 2, 9, 2 rows, by size: 2 + 2 rows gain 2, with 5 rows 2 - 1.5, with 9 less."""
    sizes = [5, 2, 9, 2]
    losses, owners = by_clients([[1.3, 0.5, 1.5, 0.7], [1.0] * 4, [1.3, 0.4, 1.5, 0.6]], sizes)
    np.testing.assert_array_equal(by_size(1, np.asarray(sizes))(losses, owners), [1, 2, 1, 2])


def test_clients_of_one_size_are_on_the_same_side_of_the_limit() -> None:
    """The first gains 1 row by row and the second, of the same size, loses 0.4: together they gain."""
    sizes = [3, 3, 4]
    for second, expected in ((2.4, [1, 1, 0]), (3.1, [0, 0, 0])):
        losses, owners = by_clients([[2.0] * 3, [1.0, second, 9.0]], sizes)
        np.testing.assert_array_equal(by_size(0, np.asarray(sizes))(losses, owners), expected)


def rows_of(*divisions: Sequence[float]) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(each, float) for each in divisions)


def test_a_policy_decides_anew_in_each_division_and_its_test_rows_follow() -> None:
    owners = np.array([0, 1, 1])
    local = Candidate("local", "alone", rows_of([1] * 3, [1] * 3, [1] * 3), rows_of([1] * 3, [1] * 3, [1] * 3))
    shared = Candidate("fedavg", "shared", rows_of([0, 1, 2], [0] * 3, [2] * 3), rows_of([7] * 3, [7] * 3, [7] * 3))
    found = policy(BY_SIZE, by_size(0, np.array([1, 2])), [local, shared], (owners, owners))
    assert (found.name, found.candidate.kind) == (BY_SIZE, KIND)
    np.testing.assert_array_equal(np.stack(found.choices), [[1, 0], [1, 1], [0, 0]])
    np.testing.assert_array_equal(np.stack(found.candidate.test), [[7, 1, 1], [7, 7, 7], [1, 1, 1]])


def test_the_validation_loss_of_a_policy_is_cross_fitted() -> None:
    """A rule that takes the model with the least loss on its rows: each row is scored by a choice without it."""
    rng = np.random.default_rng(0)
    owners = np.zeros(2 * FOLDS, int)
    one, other = (
        Candidate(name, "shared", (rng.normal(size=2 * FOLDS),), (np.zeros(3),)) for name in ("one", "other")
    )
    losses = np.stack([one.validation[0], other.validation[0]])
    seen: list[int] = []

    def rule(given: np.ndarray, whose: np.ndarray) -> np.ndarray:
        seen.append(len(whose))
        return np.array([given.sum(axis=1).argmin()])

    found = policy("x", rule, [one, other], (owners, np.zeros(3, int)))
    for fold in range(FOLDS):
        held = np.arange(2 * FOLDS) % FOLDS == fold
        expected = losses[losses[:, ~held].sum(axis=1).argmin(), held]
        np.testing.assert_array_equal(found.candidate.validation[0][held], expected)
    assert sorted(seen) == [2 * FOLDS - 2] * FOLDS + [2 * FOLDS]


def test_noise_is_no_better_by_its_policy_than_by_itself() -> None:
    """Six models of pure noise: the least of their validation losses is 0.2 too low, the cross-fitted one is not."""
    rng = np.random.default_rng(1)
    clients, rows, draws = 6, 20, 40
    owners = np.repeat(np.arange(clients), rows)
    made = [
        Candidate(
            str(i), "alone" if i == 0 else "shared", *(tuple(rng.normal(size=(draws, len(owners)))) for _ in range(2))
        )
        for i in range(6)
    ]
    for found in choices_of(made, (owners, owners), clients)[:2]:
        kept = [np.stack([one.validation[draw] for one in made]) for draw in range(draws)]
        naive = np.mean([
            each[found.choices[draw][owners], np.arange(len(owners))].mean() for draw, each in enumerate(kept)
        ])  # fmt: skip
        assert naive < -0.1
        assert abs(np.mean([each.mean() for each in found.candidate.validation])) < 0.04


def test_the_policy_is_chosen_by_validation_rows_of_its_division_alone() -> None:
    good = np.zeros(4)
    owners = np.arange(4)
    one = Candidate("a", "alone", (good, good + 1), (good + 7, good + 7))
    other = Candidate("b", "shared", (good + 1, good), (good + 3, good + 3))
    chosen = choices_of([one, other], (owners, owners), 4)[2]
    assert (chosen.name, chosen.candidate.kind) == (CHOSEN, KIND)
    np.testing.assert_array_equal(np.stack(chosen.choices), [[0] * 4, [1] * 4])
    np.testing.assert_array_equal(np.stack(chosen.candidate.test), [good + 7, good + 3])


def test_the_choice_is_a_policy_where_no_candidate_is_as_good_for_all() -> None:
    """Of two large clients one gains and one loses by what small ones gain by: the portfolio serves all."""
    sizes = [FEWEST_ROWS - 1] * 5 + [30, 31]
    losses, owners = by_clients([[1.0] * 7, [0.5] * 5 + [2.0, 0.5]], sizes)
    kinds = ("alone", "shared")
    made = [Candidate(kind, kind, (rows,), (rows,)) for kind, rows in zip(kinds, losses, strict=True)]
    own, small, chosen = choices_of(made, (owners, owners), 7)
    assert (own.name, small.name) == (PORTFOLIO, BY_SIZE)
    np.testing.assert_array_equal(small.choices[0], [1] * 5 + [0, 0])
    np.testing.assert_array_equal(own.choices[0], [1] * 5 + [0, 1])
    np.testing.assert_array_equal(chosen.choices[0], own.choices[0])


def test_the_first_is_that_with_the_least_mean_validation_loss_of_each_division() -> None:
    rows = rows_of([1.0, 2.0], [0.0, 1.0])
    one = Candidate("a", "alone", rows, rows)
    other = Candidate("b", "alone", rows[::-1], rows)
    np.testing.assert_array_equal(first_of([one, other, one]), [1, 0])


def test_a_client_without_rows_has_the_default_that_is_better_by_itself() -> None:
    """All clients with rows leave the worse default, so that both portfolios have the same loss."""
    losses = np.stack([np.full(12, loss) + 0.01 * np.arange(12) for loss in (2.0, 1.0)])
    for order in ([0, 1], [1, 0]):
        chosen = portfolio(3)(losses[order], np.repeat([0, 2], 6))
        assert chosen.tolist() == [order.index(1)] * 3
