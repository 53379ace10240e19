"""The gallery: every report that it links to is there as text, and becomes a live page of the site."""

import pytest

from docs.make import gallery


@pytest.mark.second
def test_every_report_is_there_and_becomes_a_page():
    folders = gallery.folders()
    assert len(folders) >= 6
    for folder in folders:
        assert (gallery.ROOT / "results" / folder / "report.md").is_file()
    assert gallery.place("gallery/exam") == "gallery/exam.html"
    assert gallery.place("pfedme/table1-as-published") == "gallery/pfedme-table1-as-published.html"
    pages = gallery.pages()
    assert set(pages) == {gallery.place(folder) for folder in folders}
    for text in pages.values():
        assert text.startswith("<!doctype html>")
        assert "https://" not in text.split("<script", 1)[0]


def test_the_links_of_the_page_lead_to_them():
    page = gallery.linked((gallery.ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    assert [page.count(f"]({gallery.place(folder)})") for folder in gallery.folders()] == [1] * len(gallery.folders())
    assert "/report.md)" not in page
    assert "../results/gallery/README.md" in page


def test_each_kind_of_answer_has_a_page():
    """Federation helps, local training wins, and it is not known: the headline of each says so."""
    headlines = {"exam": "Use ", "har": "Do not federate", "inconclusive": "Inconclusive"}
    for folder, words in headlines.items():
        report = (gallery.ROOT / "results" / "gallery" / folder / "report.md").read_text(encoding="utf-8")
        assert f"**{words}" in report, folder
