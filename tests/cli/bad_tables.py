"""Bad tables, and bad inputs of the commands that start from a table or a model file, for `test_many_bad_inputs`."""

import gzip
from collections.abc import Iterator

from tests.cli.bad_inputs import FILES, OWN, TABLE, Bad

ROWS = [f"{'ab'[i % 2]},{i / 7},{'yn'[i % 3 == 0]}" for i in range(40)]


def table(header: str = "client,x,label", **changed: str) -> str:
    """The small table with another header or other rows: r3="a,1,y" is its third row of data."""
    rows = [changed.get(f"r{number}", row) for number, row in enumerate(ROWS, 1)]
    return "\n".join([header, *rows]) + "\n"


TEXTS: list[tuple[str | bytes, str]] = [
    ("", "cannot be read"),
    ("\n\n", "cannot be read"),
    ("client,x,label\n", "no rows"),
    ("client\na\n", "one column"),
    (table("client,label,label"), "column 'label' appears more than once"),
    (table("client,client,label"), "column 'client' appears more than once"),
    (table("client,x"), "more values than the header"),
    (table(r4="a,1,y,9"), "line 5"),
    (table(r4='a,"1,y'), ""),
    (table("klient,x,label"), "no client column 'client'; did you mean 'klient'"),
    (table("client,x,lable"), "no label column 'label'; did you mean 'lable'"),
    (table(r4=",1,y"), "column 'client': 1 value is missing, first in row 4"),
    (table(r4="   ,1,y"), "blank client name in row 4"),
    (table(r4="a,1,"), "column 'label': 1 value is missing, first in row 4"),
    (table(r4="a,1,  "), "column 'label': 1 value is missing, first in row 4"),
    (table(r4="a,inf,y"), "column 'x' is infinite in row 4"),
    (table(r4="a,-inf,y"), "column 'x' is infinite in row 4"),
    (table(r4="a,1e300,y"), "column 'x' is beyond 1e+30 in row 4"),
    (table(r4="solo,1,y"), "client 'solo' has 1 sample"),
    (TABLE.replace(",y", ",n"), "all labels are 'n'"),
    ("client,x,label\n" + "".join(f"{'ab'[i % 2]},{i},p{i}\n" for i in range(40)), "a label of its own"),
    ("client,x,label\n" + "".join(f"{'ab'[i % 2]},7,{'yn'[i % 3 == 0]}\n" for i in range(40)), "no feature is left"),
    ("client,label\n" + "a,y\nb,n\n" * 20, "no feature column"),
    ("client,x,label\n" + "".join(f"{'ab'[i % 2]},{i / 7},1e300\n" for i in range(40)), "column 'label' is beyond"),
    (TABLE.replace("\n", "\r").replace(",y", ",n"), "all labels are 'n'"),
    ("client,x,label\n" + "".join(f"{'ab'[i % 2]},{i / 7},2020-01-01\n" for i in range(40)), "all labels are"),
    (b"\x00\x01\x02\x03", "no text"),
    (b"\xff\xfe\x00", ""),
    (b"PK\x03\x04" + b"\x00" * 40, "no text"),
    (table("client,x,label,split").replace("\n", ",train\n").replace("split,train", "split"), "no test rows"),
    (table("client,x,label,split").replace("\n", ",dev\n").replace("split,dev", "split"), "'dev' in row 1"),
]
LOOKED_AT = (
    *("solo", "test rows", "dev", "missing, first", "blank client", "is infinite", "is beyond", "all labels are"),
    *("a label of its own", "no feature"),
)
"""What is wrong with tables that `inspect` shows all the same; see `tests/data/test_inspection.py`."""
DEEP = b"[" * 100_000 + b"]" * 100_000
PACKED = gzip.compress(TABLE.encode() * 200)


def tables() -> Iterator[Bad]:
    """Tables that cannot be used, by every command that reads one."""
    yield Bad((*OWN, "--set", "data.task="), FILES)
    for number, (text, words) in enumerate(TEXTS):
        commands = [("compare", "--data", "own.csv", "--methods", "local"), ("inspect", "own.csv")]
        if number % 4 == 0:
            commands.append(("sweep", "--data", "own.csv", "--methods", "local", "--set", "local.rate=0.1,0.2"))
        for command in commands:
            if command[0] == "inspect" and any(part in words for part in LOOKED_AT):
                continue
            yield Bad(command, {"own.csv": text}, words=words)
    for name, content, words in (
        ("own.csv.gz", PACKED[: len(PACKED) // 2], "ends in the middle"),
        ("own.csv.gz", b"no gzip", "cannot be read"),
        ("own.parquet", b"PAR1 not really", "cannot be read as Parquet"),
        ("own.json", b"{", "cannot be read as JSON"),
        ("own.json", b"[1, 2]", "a list of objects"),
        ("own.jsonl", b"{}\n{", "cannot be read as JSON"),
        ("own.json", DEEP, "nested too deeply"),
        ("own.jsonl", b'{"client": ' + DEEP + b"}", "nested too deeply"),
        ("own.xlsx", b"PK nothing", "damaged or not a workbook"),
        ("own.xlsx", b"client,x\na,1\n", "not a workbook"),
        ("own.xls", b"\xd0\xcf\x11\xe0" + b"\0" * 600, "Excel 97 to 2003"),
        ("folder.csv/own.csv", TABLE.encode(), "is a folder"),
    ):
        for command in (("compare", "--methods", "local", "--data"), ("inspect",)):
            yield Bad((*command, name.partition("/")[0]), {name: content}, words=words)
    for path in ("loop", "loop.csv", "absent.csv", "a/b/c.csv", "/dev/null", "x" * 300 + ".csv", ""):
        yield Bad(("inspect", path))
    for option in (
        ("--client", "x y"),
        ("--label", ""),
        ("--client", "label"),
        ("--task", "regresion"),
        ("--tasc", "x"),
    ):
        yield Bad(("inspect", "own.csv", *option), FILES)


def of_models() -> Iterator[Bad]:
    """Bad inputs of predict, export and personalize."""
    bad_files: list[tuple[str, bytes]] = [
        ("m.safetensors", b""),
        ("m.safetensors", b"garbage"),
        ("m.safetensors", (16).to_bytes(8, "little") + b'{"a": 3}        '),
        ("m.safetensors", (2**40).to_bytes(8, "little") + b"{}"),
        ("models/notes.txt", b"no model"),
    ]
    for name, content in bad_files:
        model = name.partition("/")[0]
        files = {name: content, **FILES}
        yield Bad(("predict", model, "own.csv"), files)
        yield Bad(("predict", model, "own.csv", "--out", "p.csv"), files)
        yield Bad(("export", model), files)
        yield Bad(("personalize", model, "--data", "own.csv"), files)
    for model in ("absent.safetensors", "loop", ".", "", "own.csv"):
        yield Bad(("predict", model, "own.csv"), FILES)
        yield Bad(("export", model), FILES)
        yield Bad(("personalize", model, "--data", "own.csv"), FILES)
    yield from (Bad(words) for words in (("predict",), ("predict", "m"), ("export",), ("personalize",), ("inspect",)))
    yield Bad(("predict", "m", "own.csv", "--out", ""), FILES)
    yield Bad(("export", "m", "--out", " "), FILES)
    yield Bad(("export", "m", "--format", "onx"), FILES)
