"""Bad experiment files, for `test_many_bad_inputs`."""

from collections.abc import Iterator

from tests.cli.bad_inputs import CELL, METHOD, RUN, TOML, Bad


def experiments() -> Iterator[Bad]:
    """Experiment files."""
    texts: list[str | bytes] = [
        "", "\x00", "{}", "[[cells]]", "= 3", "name", "name = ", "name = 'x", "a = 1\na = 2", "cells = 3",
        "cells = []", "cells = [3]", "cells = {}", CELL, f"{CELL}methods = []", f"{CELL}methods = 3",
        METHOD, f"{TOML}[[cells]]", f"{TOML}{TOML}", f"{TOML}{METHOD}", f"seeds = 0\n{TOML}",
        f"seeds = 'two'\n{TOML}",
        f"seeds = nan\n{TOML}", f"seed = 3\n{TOML}", f"first_seed = -1\n{TOML}", f"protocol = 'x'\n{TOML}",
        f"name = 3\n{TOML}", f"across = 'data.name'\n{TOML}", f"across = 3\n{TOML}", f"defaults = 3\n{TOML}",
        f"defaults = []\n{TOML}", f"[defaults]\nrounds = 0\n{TOML}", f"[defaults]\nraounds = 3\n{TOML}",
        f"[default]\nrounds = 3\n{TOML}", f"nosuch = 1\n{TOML}", b"\xff\xfe\x00n", b"name = '\xff'", "\ufeffname = 3",
        TOML.replace("synthetic", "nosuch"), TOML.replace('"mlr"', '"nosuch"'), TOML.replace('"mlr"', "3"),
        TOML.replace('"local"', '"nosuch"'), TOML.replace('"local"', "3"), TOML.replace('"local"', '""'),
        TOML.replace("clients = 5", "clients = 0"), TOML.replace("clients = 5", "clients = 'x'"),
        TOML.replace("clients = 5", "clients = 2020-01-01"), TOML.replace("clients = 5", "clients = inf"),
        TOML.replace("clients = 5", "clietns = 5"), TOML.replace('"one"', "3"), TOML.replace('id = "one"\n', ""),
        TOML.replace('"synthetic"', '"table"'), TOML.replace("{ name", "{ path = '\\u0000', name"),
        TOML.replace('name = "synthetic", clients = 5, max_size = 40', 'name = "table", path = "a\\u0000b"'),
        TOML.replace('name = "synthetic", ', ""), TOML.replace('model = "mlr"', "model = {}"),
        TOML.replace('model = "mlr"', ""), "[" * 3000, "a" * 100_000, f"description = 3\n{TOML}",
    ]  # fmt: skip
    cells = (
        "rounds = 0|rounds = -1|rounds = 'x'|rounds = nan|rounds = inf|rounds = 1.5|rounds = 99999999999999999999|"
        "cohort = 0|cohort = 9|cohort = 'x'|cohort = nan|sampling = 'x'|eval_every = 0|select = 'x'|"
        "select = 'best-test'|"
        "splits = []|splits = ['x']|splits = ['train']|eval_clients = 9|eval_clients = 0|private = 'x'|draw = ['x']|"
        "metric = 'x'|metric = 3|raounds = 3|tune = true|tune = 3|gaps = [1]|new_splits = 3|title = 3|"
        "gaps = [{ larger = 'local/local', smaller = 'x', value = nan }]|gaps = [{ larger = 3 }]"
    )
    texts += [f"{CELL}{line}\n{METHOD}" for line in cells.split("|")]
    lines = (
        "rate = 'x'|rate = nan|rate = -1|rate = true|rate = [1]|local_steps = 0|local_steps = 99999999999|raet = 1|"
        "label = 3|published = 3|published = [3]|published = [{}]|published_seconds = 0|published_seconds = nan|"
        "published = [{ model = 'x', value = 1 }]|published = [{ model = 'local', value = nan }]|"
        "published = [{ model = 'local', value = 'x' }]|published = [{ model = 'local', value = 1, withn = 3 }]|"
        "published = [{ model = 'local', value = 1, within = -1 }]|"
        "published = [{ model = 'local', value = 1, std = -1 }]|"
        "published = [{ model = 'local', value = 1, metric = 'x' }]|"
        "published = [{ model = 'local', value = 1, runs = 0 }]"
    )
    texts += [f"{TOML}{line}\n" for line in lines.split("|")]
    yield from (Bad(RUN, {"here.toml": text}) for text in texts)
    for option in (("--metric", "x"), ("--set", "rounds=0"), ("--only", "x"), ("--out", ""), ("--jobs", "0")):
        yield Bad((*RUN, *option), {"here.toml": TOML})
