"""What an advice says while it is at work: a first answer from regressions, then each method as it is finished."""

from collections.abc import Sequence

from idiolect.study.advice.decision import gap, words_of
from idiolect.study.advice.scored import Candidate, pooled
from idiolect.study.analyse.intervals import Difference

_OPEN = "Federated models, groups of clients and trees can still change this."


def first_answer(bars: Sequence[Candidate], ratio: float, divisions: int) -> str:
    """Say what the regressions show: whether pooled rows predict better than each client's own.

    bars: the regressions; ratio: test rows / other rows, see `resampled`; divisions: in all, of which the bars may
    have only the first. "" where one of the two is missing.
    """
    own = next((one for one in bars if one.name in ("own logistic", "own ridge")), None)
    both = next((one for one in bars if one.name in ("pooled logistic", "pooled ridge")), None)
    if own is None or both is None:
        return ""
    difference = gap(both, own, ratio)
    if difference.above(0):
        words = "sharing is likely to pay"
    elif difference.below(0):
        words = "one shared model is likely to be worse than local training"
    else:
        words = "inconclusive so far"
    some = "" if len(own.test) == divisions else f" on {len(own.test)} of {divisions} divisions"
    change = _change(difference, own, own=True)
    return f"First answer, from regressions{some}: {words}. Pooled rows have {change}. {_OPEN}"


def after(one: Candidate, alone: Candidate, left: Sequence[str], ratio: float) -> str:
    """Say what a finished method gained over clients by themselves, and which methods are still to come."""
    rest = f" Still to come: {', '.join(left)}." if left else ""
    return f"{one.name}: {_change(gap(one, alone, ratio), alone)}.{rest}"


def _change(difference: Difference, alone: Candidate, own: bool = False) -> str:
    """The change of the loss as a share of what clients reach by themselves, with its interval."""
    loss = float(pooled(alone.test).mean())
    text = f"{abs(100 * difference.mean / loss):.1f} % {'lower' if difference.mean >= 0 else 'higher'} test loss"
    text += " than each client's own rows" if own else f" than {words_of(alone.name)}"
    if difference.low is None or difference.high is None:
        return text
    ends = sorted((-100 * difference.high / loss, -100 * difference.low / loss))
    return f"{text} (95 % interval {ends[0]:+.1f} % to {ends[1]:+.1f} %)"
