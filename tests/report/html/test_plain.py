"""The five questions can be answered from the page's text alone, without a script."""

import re
from html import unescape

from idiolect.report.html.plain import plain_html
from tests.report.html.made import HOSTILE, compared, data_of


def text_of(page):
    return unescape(re.sub(r"<[^>]*>", "\n", page))


def test_everything_in_words_is_there(tmp_path):
    data = data_of(compared(tmp_path))
    text = text_of(plain_html(data))
    for question, answer in data["questions"]:
        assert question in text
        assert answer in text
    for row in data["cells"][0]["table"]["rows"]:
        assert all(cell["text"] in text for cell in row["cells"])
    for part in (
        "idiolect compare --data toy",
        "rate = 0.02",
        "The models of the last round are shown.",
        "2026-01-02",
    ):
        assert part in text


def test_names_are_texts(tmp_path):
    methods = [{"name": name, "label": HOSTILE[i]} for i, name in enumerate(("local", "fedavg", "ditto"))]
    page = plain_html(data_of(compared(tmp_path, names=HOSTILE[3:], methods=methods)))
    assert "<script" not in page
    assert "<b>" not in page
    assert HOSTILE[0] in text_of(page)
