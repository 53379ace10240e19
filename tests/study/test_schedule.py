import pytest

from idiolect.study.schedule import Schedule


def due(beyond=3, **settings):
    schedule = Schedule(**settings)
    return [round for round in range(schedule.rounds + beyond) if schedule.is_due(round)]


def test_without_more_words_every_tenth_round_the_start_and_the_last_are_due():
    schedule = Schedule(25)
    assert due(rounds=25) == [0, 10, 20, 25]
    assert (schedule.splits, schedule.models) == (("train", "test"), ())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"eval_every": 3}, [0, 3, 6, 9, 10]),
        ({"eval_every": 5}, [0, 5, 10]),
        ({"eval_every": 10}, [0, 10]),
        ({"eval_every": 11}, [0, 10]),
        ({"eval_every": 4, "tail": 1}, [0, 4, 8, 10]),
        ({"eval_every": 4, "tail": 2}, [0, 4, 8, 9, 10]),
        ({"eval_every": 4, "tail": 4}, [0, 4, 7, 8, 9, 10]),
        ({"eval_every": 7, "tail": 99}, [*range(11)]),
        ({"eval_every": 3, "initial": False}, [3, 6, 9, 10]),
        ({"eval_every": 7, "tail": 99, "initial": False}, [*range(1, 11)]),
    ],
)
def test_of_ten_rounds_these_are_due(settings, expected):
    assert due(rounds=10, **settings) == expected


def test_nothing_is_due_after_the_last_round():
    schedule = Schedule(4, eval_every=2, tail=3)
    assert not any(schedule.is_due(round) for round in range(5, 20))


@pytest.mark.parametrize("initial", [True, False])
@pytest.mark.parametrize("tail", [0, 2, 9])
@pytest.mark.parametrize("eval_every", [1, 2, 3, 8])
def test_the_next_due_round_is_the_first_one_later(eval_every, tail, initial):
    schedule = Schedule(7, eval_every, tail, initial=initial)
    for round in range(7):
        assert schedule.next_due(round) == min(later for later in range(round + 1, 8) if schedule.is_due(later))


def test_the_round_itself_is_not_the_next():
    schedule = Schedule(7, 3)
    assert [schedule.next_due(round) for round in range(7)] == [3, 3, 3, 6, 6, 6, 7]
