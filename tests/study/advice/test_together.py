"""Pieces of work side by side: all results, the first error, and an end at the next check."""

import threading

import pytest

from idiolect.study.advice.together import StoppedError, side_by_side


def test_every_result_has_its_place():
    work = [lambda check, n=n: n * n for n in range(5)]
    assert dict(side_by_side(work, workers=2)) == {n: n * n for n in range(5)}


def test_two_pieces_really_run_together():
    both = threading.Barrier(2, timeout=10)
    assert sorted(dict(side_by_side([lambda check: both.wait() >= 0] * 2, workers=2))) == [0, 1]


def test_an_error_is_raised_and_stops_the_others():
    begun, ended = threading.Event(), []

    def fails(check):
        begun.wait(10)
        raise ValueError("this one")

    def goes_on(check):
        begun.set()
        try:
            while True:
                check()
        except StoppedError:
            ended.append(True)
            raise

    with pytest.raises(ValueError, match="this one"):
        list(side_by_side([fails, goes_on], workers=2))
    assert ended == [True]


def test_closing_it_stops_what_runs():
    begun, ended = threading.Event(), threading.Event()

    def goes_on(check):
        begun.set()
        try:
            while True:
                check()
        finally:
            ended.set()

    results = side_by_side([lambda check: int(begun.wait(10)), goes_on], workers=2)
    assert next(results) == (0, 1)
    results.close()
    assert ended.is_set()
