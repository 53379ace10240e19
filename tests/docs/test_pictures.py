"""The pictures of README.md are drawn from what was measured."""

import pytest

from docs.make import pictures
from idiolect.report.view.conclusion import default_of
from idiolect.report.view.folder import view_of_folder


def test_ratios_are_those_of_the_table():
    text = (
        "| W1 | 0.0116 | 0.387 | **33** | 37 | 1.00 |\n| W6f | 2.06 | 1.36 | 0.66 | 0.8 | 1.17 |\n\n"
        "| workload | fedjax | pfl |\n|---|---|---|\n| W1 | 0.200 s, **9.1** | 0.404 s, 19 (another run) |\n"
    )
    assert pictures.ratios(text) == {"W1": (33.0, {"fedjax": 9.1, "pfl": 19.0}), "W6f": (0.66, {})}


def test_the_page_of_times_has_every_bar():
    measured = pictures.ratios(pictures.PERFORMANCE.read_text(encoding="utf-8"))
    assert pictures.LOOPS.keys() <= measured.keys()
    for work in pictures.ALL:
        assert measured[work][1].keys() == {"fedjax", "pfl", "Flower", "torch.func"}
    bars = pictures.speed().axes[0].patches
    assert len(bars) == len(pictures.LOOPS) + 4 * len(pictures.ALL)
    assert sorted(bar.get_width() for bar in bars)[-1] == pytest.approx(measured["W3"][1]["Flower"] - 1)


@pytest.mark.parametrize("folder", pictures.FEDERATIONS)
def test_gains_are_against_local_training_and_lower_is_better(folder):
    """The mean gain is the difference of the table's scores, turned round, of the chosen settings alone."""
    (part,) = view_of_folder(pictures.ROOT / "results" / "gallery" / folder).parts
    own = [one for one in part.lines if one.method not in part.muted and one.model == default_of(part, one.method)]
    scores = {part.entry(line.method).name: line.pooled.mean for line in own}
    gains = pictures.gains(part)
    assert {name for name, *_ in gains} == set(pictures.MODELS.values())
    names = {title: name for name, title in pictures.MODELS.items()}
    assert len(gains) == len(names)
    for title, gain, low, high in gains:
        assert low < gain < high
        assert gain == pytest.approx(scores["local"] - scores[names[title]], abs=2e-3)
