from idiolect.report.html.leaders import leaders_of
from idiolect.report.html.of_results import whole_of
from idiolect.report.html.several import several
from tests.report.html.made import compared


def test_wins_are_counted_and_the_largest_loss_is_told(tmp_path):
    parts = [
        part
        for i, gain in enumerate((0.05, -0.02, -0.05))
        for part in whole_of(compared(tmp_path / str(i), gain=gain), "").parts
    ]
    leaders = [leaders_of(part) for part in parts]
    told = several(parts, leaders, [[f"{name}{i}" for name in "abc"] for i in range(3)])
    assert told[0].startswith(
        "Of 3 comparisons the best score has training alone in 2, \u2068Ditto (personal)\u2069 in 1;"
    )
    assert (
        "better beyond the noise of the seeds in 1 of 3 comparisons, worse in 1, and not told apart in 1" in told[1]
    )
    assert told[2] == "Most is lost in \u2068cell0\u2069: c2"


def test_one_with_scores_among_several(tmp_path):
    part = whole_of(compared(tmp_path), "").parts[0]
    told = several([part, part], [leaders_of(part), None], [["a", "b", "c"], ["x", "y", "z"]])
    assert told == ["Of 2 comparisons one has scores, \u2068cell0\u2069. a", "b", "c"]
    assert several([part], [None], [["x", "y", "z"]])[0] == "x"
