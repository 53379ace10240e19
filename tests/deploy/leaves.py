"""What leaves a site by each method, read from the logs of sites: `python -m tests.deploy.leaves` writes the page."""

import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message, part_of, read_message
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.transport import InProcess
from tests import modalities
from tests.deploy.federation import data_of, experiment_of, hub_of, sites_of

PAGE = Path(__file__).parents[2] / "docs" / "what-leaves.md"
BEGIN, END = "<!-- begin: python -m tests.deploy.leaves -->\n", "<!-- end -->\n"
HEAD = "| method | to whom | vectors of a round's message | bytes per round | what stays |\n|---|---|---|---|---|\n"
CANNOT, MODALITIES = {"global"}, {"mmfl", "mmfl-fusion"}
LINEAR = {"mocha"}
PARTS = {"layers/0": "d_first", "layers/1": "d_last"}
"""Of a perceptron with one hidden layer: the parameters of its first and its last layer."""


def row(name: str, folder: Path) -> str:
    """The table's line of a method, from the log and the kept state of the first site below a folder."""
    site = folder / "site-1"
    lines = [line for line in Outbox(site / "sent.jsonl").lines() if line["task"] in ("round", "exchange")]
    letters = {line["to"]: line for line in lines if line["vectors"]}
    begun = read_message(next((site / "state").glob("*/*/kept.msg"))) or Message()
    sent = next(iter(letters.values()), {"vectors": {}, "bytes": 0})
    by_part = parts({leaf: shape for leaf, (_, shape) in sent["vectors"].items()})
    stays = {
        part: {leaf: v.shape for leaf, v in part_of(part, begun.vectors).items()} for part in ("view", "private")
    }
    kept = [("own view", size) for _, size in parts(stays["view"])] + parts(stays["private"])
    to = "nobody" if not letters else "hub" if "hub" in letters else "each neighbour"
    assert sent["bytes"] == 4 * sum(size_of(shape) for _, shape in sent["vectors"].values()), "4 bytes a number"
    sizes = [f"4 {size}" if not size.isdigit() else str(4 * int(size)) for _, size in by_part]
    return f"| `{name}` | {to} | {told(by_part) or 'none'} | {' + '.join(sizes) or 0} | {told(kept) or 'no state'} |"


def told(found: Sequence[tuple[str, str]]) -> str:
    """The parts with their sizes."""
    return ", ".join(f"{name} ({size})" if name else size for name, size in found)


def size_of(shape: Sequence[int]) -> int:
    """Numbers in an array."""
    size = 1
    for length in shape:
        size *= length
    return size


def parts(shapes: Mapping[str, Sequence[int]]) -> list[tuple[str, str]]:
    """(name, numbers of it) of the parts of a message: parameters of layers together, all else by itself."""
    layers, others = dict[str, set[str]](), list[tuple[str, str]]()
    for leaf, shape in shapes.items():
        found = re.fullmatch(r"(?:(.*?)/)??(layers/\d+/)?(weight|bias)", leaf)
        if found is None:
            others.append(("" if leaf == "value" else leaf, str(size_of(shape))))
        else:
            layers.setdefault(found[1] or "", set()).add((found[2] or "").strip("/"))
    whole = [(name, PARTS.get(*held, "d") if len(held) == 1 else "d") for name, held in sorted(layers.items())]
    return whole + sorted(others)


def ran(name: str, folder: Path) -> str:
    """Run a method for one round at sites in this process; its line."""
    if name in MODALITIES:
        data = modalities.data_of((("acc",), ("text",)), sizes=(8, 8))
        model = {"name": "multimodal", "features": 2, "decoder": [], **modalities.FLAT}
        model |= {"fusion": "concat"} if name == "mmfl-fusion" else {}
        method = {"name": name, "rates": [0.1], "batch_size": 4, "local_steps": 1, "meta_steps": 1}
    else:
        data, method = data_of(), name
        model = {"name": "mlr"} if name in LINEAR else {"name": "mlp", "hidden": [3]}
    experiment = experiment_of([method], model=model, rounds=1, eval_every=1, splits=("test",))
    run_hub(hub_of(folder / "hub", experiment, data), InProcess(sites_of(folder, data)))
    return row(name, folder)


def table(names: Sequence[str]) -> str:
    """The lines of methods, each run now."""
    lines: list[str] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(ran(name, Path(folder)))
            print(lines[-1], file=sys.stderr, flush=True)
    return HEAD + "\n".join(lines) + "\n"


def written() -> str:
    """The page's table."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Write the page's table."""
    text = PAGE.read_text()
    made = table(sorted(ALGORITHMS.keys() - CANNOT - MODALITIES))
    PAGE.write_text(text.partition(BEGIN)[0] + BEGIN + made + END + text.partition(END)[2])


if __name__ == "__main__":
    main()
