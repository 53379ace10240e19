"""The site has the figures that the reports under results/ only name by a command."""

from pathlib import Path

from docs.make import drawn
from docs.make.repository import ROOT

FOLDER = ROOT / "results" / "pfedme" / "fig5"


def test_a_report_gets_the_pictures_that_its_commands_draw() -> None:
    report = (FOLDER / "report.md").read_text()
    text, images = drawn.drawn(report)
    assert list(images) == ["figures/clients-1.svg", "figures/clients-2.svg"]
    assert all(image.rstrip().endswith("</svg>") for image in images.values())
    assert images["figures/clients-1.svg"] != images["figures/clients-2.svg"]
    for number, cell in ((1, "mnist-mlr"), (2, "mnist-dnn")):
        after = text.partition(f"![Test score of every client](figures/clients-{number}.svg)\n\n")[2]
        assert after.startswith("Every client's test score is in [clients.csv](clients.csv); this command draws it: ")
        assert after.splitlines()[0].endswith(
            f"`idiolect figure results/pfedme/fig5 clients --cell {cell} --format svg`"
        )


def test_a_text_without_such_a_command_stays_as_it_is() -> None:
    assert drawn.drawn("# A page\n\n`idiolect figure runs/demo clients`\n") == (
        "# A page\n\n`idiolect figure runs/demo clients`\n",
        {},
    )


def test_every_command_in_a_report_is_found() -> None:
    """Each report names its own folder: else the site would show another folder's clients, or none."""
    found = 0
    for report in sorted(Path(ROOT / "results").glob("*/*/report.md")):
        text = report.read_text(encoding="utf-8")
        matches = list(drawn.COMMAND.finditer(text))
        assert len(matches) == text.count("`idiolect figure "), report
        assert {match["folder"] for match in matches} <= {report.parent.relative_to(ROOT).as_posix()}, report
        found += len(matches)
    assert found > 100
