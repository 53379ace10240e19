"""The page's files: all in the order, and without a way for data to become markup."""

import hashlib
import re

import pytest

from tests.report.html.payloads import ASSETS

OWN = sorted([*ASSETS.glob("js/*.js"), *ASSETS.glob("css/*.css")])
VENDORED = {  # as published: d3 7.9.0 dist/d3.min.js, @observablehq/plot 0.6.17 dist/plot.umd.min.js
    "d3.min.js": "f2094bbf6141b359722c4fe454eb6c4b0f0e42cc10cc7af921fc158fceb86539",
    "plot.min.js": "4358086467740777dd788d6b27a95cebdbaefdd50c730a3060117073bd7134cb",
}


def test_the_order_names_every_file_once() -> None:
    listed = (ASSETS / "order.txt").read_text().split()
    assert sorted(listed) == sorted(
        path.relative_to(ASSETS).as_posix() for path in [*OWN, *ASSETS.glob("vendor/*.js")]
    )


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_files_write_no_markup(path: object) -> None:
    text = path.read_text()  # type: ignore[attr-defined]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.html\(|https?://(?!www\.w3\.org/)",
        text,
    )
    assert "</script" not in text.lower()


def test_libraries_are_as_published_and_bring_their_licences() -> None:
    for name, digest in VENDORED.items():
        assert hashlib.sha256((ASSETS / "vendor" / name).read_bytes()).hexdigest() == digest
    licences = (ASSETS / "vendor" / "licences.js").read_text()
    for name in ("d3.LICENSE", "plot.LICENSE"):
        assert (ASSETS / "vendor" / name).read_text().strip() in licences
