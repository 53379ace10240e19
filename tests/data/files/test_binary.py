"""Tables in binary formats: what is broken, cut or foreign is refused in one line."""

import io
import warnings
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.table import read_table

ROWS = "client,x,label\n" + "".join(f"{'ab'[i % 2]},{i / 7:.3f},{i % 3 % 2}\n" for i in range(12))


def workbook(**changed: bytes | None) -> bytes:
    """A workbook of Excel; changed: the new content of its part whose name ends so, or None to leave it out."""
    good, out = io.BytesIO(), io.BytesIO()
    pd.read_csv(io.StringIO(ROWS)).to_excel(good, index=False)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            stem = name.rpartition("/")[2].partition(".")[0].strip("[]")
            content = changed.get(stem, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return out.getvalue()


OPEN_DOCUMENT = io.BytesIO()
with zipfile.ZipFile(OPEN_DOCUMENT, "w") as archive:
    archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    archive.writestr("content.xml", "<a/>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a workbook; save it as .xlsx or as CSV"),
        (b"client,x\na,1\n", "not a workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "Excel 97 to 2003 or has a password"),
        (workbook()[:1000], "damaged or not a workbook of Excel; save it again"),
        (workbook()[:-30], "damaged"),
        (workbook(workbook=None), "damaged"),
        (workbook(workbook=b"<x"), "damaged"),
        (workbook(sheet1=b"<worksheet><sheetData><row"), "damaged"),
        (workbook(styles=b"<x"), "damaged"),
        (workbook(Content_Types=None), "damaged"),
        (OPEN_DOCUMENT.getvalue(), "damaged or not a workbook"),
    ],
)
@pytest.mark.parametrize("name", ["own.xlsx", "own.xls"])
def test_a_workbook_that_is_broken_cut_or_foreign_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=rf"{name}: cannot be read as Excel: it (is|has) .*{message}"):
            read_table(tmp_path / name)


def test_a_workbook_without_styles_is_read_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "own.xlsx").write_bytes(workbook(styles=b"<a/>"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(tmp_path / "own.xlsx").rows.shape == (12, 3)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 not really PAR1"])
def test_a_parquet_file_that_is_damaged_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "own.parquet").write_bytes(content)
    with pytest.raises(
        DataError, match=r"own\.parquet: cannot be read as Parquet: it is damaged or not a Parquet file"
    ):
        read_table(tmp_path / "own.parquet")
