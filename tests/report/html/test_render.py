"""The page's text has the conclusion and every table without a script."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest

from idiolect.core.errors import StoreError
from idiolect.report.html.render import page_html, plain_html, write_page
from tests.report.html.made import HOSTILE, compared, data_of


def text_of(page):
    return unescape(re.sub(r"<[^>]*>", "\n", page))


def test_everything_in_words_is_there(tmp_path):
    data = data_of(compared(tmp_path))
    text = text_of(plain_html(data))
    for said in (data["headline"], data["numbers"], *(chip["text"] for chip in data["chips"])):
        assert said in text
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


class Read(HTMLParser):
    """The elements, addresses and texts of a page as a browser without scripts has them."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses, self.texts, self.policy = [], [], [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        named = dict(attributes)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    methods = [{"name": name, "label": HOSTILE[i]} for i, name in enumerate(("local", "fedavg", "ditto"))]
    results = compared(tmp_path_factory.mktemp("runs"), names=HOSTILE[3:], methods=methods, title=HOSTILE[0])
    return data_of(results)


def test_one_file_that_asks_for_nothing(tmp_path):
    data = data_of(compared(tmp_path / "runs"))
    page = page_html(data)
    read = Read()
    read.feed(page)
    assert read.policy.startswith(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    )
    assert all(address.startswith("#") for address in read.addresses)
    assert not {"link", "img", "iframe", "object", "form"} & {*read.tags}
    assert json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1)) == json.loads(
        json.dumps(data)
    )
    assert not re.search(r"/\*(STYLE|SCRIPT|DATA)\*/|<!--(TITLE|NOSCRIPT)-->", page)
    assert str(tmp_path) not in page


def test_hostile_names_add_no_element(hostile, tmp_path):
    plain, read = Read(), Read()
    plain.feed(page_html(data_of(compared(tmp_path))))
    page = page_html(hostile)
    read.feed(page)
    assert read.tags == plain.tags
    assert page.count("</script") == 2
    assert "\0" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(data)["title"] == HOSTILE[0]
    assert HOSTILE[0] in "".join(read.texts)


def test_written_whole_or_not_at_all(tmp_path):
    data = data_of(compared(tmp_path / "runs"))
    path = write_page(data, tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == page_html(data)
    with pytest.raises(StoreError, match="it is a folder"):
        write_page(data, tmp_path)
    with pytest.raises(StoreError, match="there is no folder"):
        write_page(data, tmp_path / "no" / "page.html")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["page.html", "runs"]
