"""The command combine: let each client combine the models of several methods, or choose one of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from idiolect.cli.options import MORE, DataDir, Json
from idiolect.cli.terminal import print_outcome
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.study.combine.make import Made


CombinationKind = Annotated[
    str,
    typer.Option(
        "--kind", metavar="KIND", help="blend: a weighted mean of all methods; portfolio: one method per client."
    ),
]
CellName = Annotated[str, typer.Option("--cell", metavar="NAME", help="The cell, if the folder has several.")]
RunSeed = Annotated[
    int | None,
    typer.Option("--seed", rich_help_panel=MORE, metavar="N", help="The runs' seed (default: the first)."),
]


def combine(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs.", show_default=False)],
    kind: CombinationKind = "blend",
    cell: CellName = "",
    seed: RunSeed = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Let each client combine the models of a finished comparison; the weights follow validation rows only.

    Examples:
    idiolect combine mine
    idiolect combine mine --kind portfolio

    Writes: RUN/models/CELL/KIND/seedN/combined.json, by which 'idiolect predict' predicts.
    """
    with loading():
        from idiolect.cli.inputs import check_runs
        from idiolect.runtime.compiled import use_compilation_cache
        from idiolect.study.combine.combined import check_kind
        from idiolect.study.combine.make import make_combined
        from idiolect.study.run.resolve import Workbench
        from idiolect.study.store.store import Store
    named = check_kind(kind)
    check_runs(folder)
    use_compilation_cache()
    with Store(folder, create=False) as store:
        made = make_combined(store, Workbench(data_dir), named, cell, seed)
    print_made(made, as_json)


def print_made(made: "Made", as_json: bool) -> None:
    """Print the scores of the methods and the combination, the weights, and how to predict."""
    rows = made.table.astype(object)
    table = rows.where(rows.notna(), None).to_dict(orient="records")
    place = made.combined.path.parent
    value = {
        "combined": str(made.combined.path),
        "rows": made.combined.content.rows,
        "table": table,
        "weights": made.combined.content.weights,
    }
    mean = made.combined.weights.mean().round(3)
    lines = [
        made.table.to_string(index=False, float_format=lambda number: f"{number:.4g}", na_rep="-"),
        "",
        "mean weights: " + ", ".join(f"{name} {weight:g}" for name, weight in mean.items()),
        f"The weights follow {made.combined.content.rows:,} validation rows; scores are means over all test rows.",
        f"written: {made.combined.path}",
        f"predict by it: idiolect predict {place} TABLE",
    ]
    print_outcome(value, lines, as_json)
