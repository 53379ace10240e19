"""A process in which two methods race side by side on two devices: python -m tests.two_races."""

from functools import partial

import numpy as np

from idiolect.data import from_arrays
from idiolect.study.advice.contestants import contestants
from idiolect.study.advice.draws import Draws, again
from idiolect.study.advice.race import field_of, race
from idiolect.study.advice.together import side_by_side

METHODS = ("local", "fedavg")


def main() -> None:
    """Print the number of rounds that each method ran to its choice."""
    rng, parts = np.random.default_rng(0), {}
    for i in range(3):
        x = rng.normal(size=(16, 2))
        parts[f"c{i}"] = (x, 5 * x @ rng.normal(size=2) + rng.normal(size=16))
    # Three divisions of three settings: neither the runs nor their better half are a multiple of the devices.
    field = field_of(Draws(again(from_arrays(parts, task="regression")), 3), None)
    racing = [c for c in contestants(METHODS, field.draws.first, 0.1, 14) if c.name in METHODS]
    racing = [type(c)(**{**vars(c), "settings": c.settings[:3]}) for c in racing]
    work = [partial(lambda one, check: race(field, one, check), one) for one in racing]
    for place, raced in sorted(side_by_side(work, 2), key=lambda done: done[0]):
        print(racing[place].name, *raced.choice.rounds)


if __name__ == "__main__":
    main()
