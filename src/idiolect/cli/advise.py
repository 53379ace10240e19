"""The command `advise`: whether the clients of a table should federate, with what, and who gains or loses."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from idiolect.cli.options import (
    ClientColumn,
    Data,
    DataDir,
    Json,
    LabelColumn,
    Out,
    Table,
    assignments,
    check_output,
    names_in,
    one_table,
)
from idiolect.cli.stopping import stoppable, this_command
from idiolect.core.errors import ConfigError, require
from idiolect.core.loading import loading


class Baselines(StrEnum):
    """The models without a federation that an advice shows."""

    ALL = "all"
    REGRESSIONS = "regressions"
    NONE = "none"


def advise(
    table: Table = None,
    data: Data = None,
    client: ClientColumn = "client",
    label: LabelColumn = "label",
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="See 'idiolect list models'; auto: it is chosen.")
    ] = "auto",
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            metavar="METHODS",
            help="Comma-separated, in addition to local and fedavg, which always run.",
        ),
    ] = "",
    splits: Annotated[
        int | None,
        typer.Option(
            "--splits",
            metavar="N",
            help="Random divisions of each client's rows. [default: 8; 16 below 2,000 rows, 5 from 50,000]",
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", help="Rounds at most; validation data choose.")
    ] = 60,
    baselines: Annotated[
        Baselines,
        typer.Option(
            "--baselines",
            metavar="NAME",
            help="Models without a federation; regressions: without trees, which take long to grow.",
        ),
    ] = Baselines.ALL,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the data or the model: data.minimum=20, model.l2=0.01.",
        ),
    ] = None,
    out: Out = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Advise whether to federate, with which method, and who gains or loses; with the uncertainty.

    If it is stopped, the same command resumes it.

    Examples:
    idiolect advise patients.csv --client hospital --label outcome
    idiolect advise --data school --splits 4 --set data.minimum=20

    Writes: the folder of --out, by default runs/advise-NAME-..., with report.html, advice.md, advice.csv and figures.
    """
    source = one_table(table, data)
    with loading():
        from idiolect.cli.inputs import data_spec, division_of
        from idiolect.cli.results import print_advice
        from idiolect.data.sets.pool import table_kept
        from idiolect.report.advice import write_advice
        from idiolect.report.page import write_folder
        from idiolect.report.progress import SweepDisplay
        from idiolect.runtime.compiled import use_compilation_cache
        from idiolect.study.advice.advise import advise as ask
        from idiolect.study.run.resolve import Workbench
        from idiolect.study.spec.experiment import digest
    require(rounds >= 1, f"--rounds {rounds} must be at least 1")
    spec, name = data_spec(source, client, label)
    if spec["name"] == "table":
        spec["title"] = name  # the page goes to others, the path of this machine does not
    own: dict[str, Any] = {} if model == "auto" else {"name": model}
    for key, value in assignments(set_).items():
        head, _, tail = key.partition(".")
        if head not in ("data", "model") or not tail:
            raise ConfigError(f"--set {key}: advise takes settings of the data and the model (data.minimum=20)")
        (spec if head == "data" else own)[tail] = value
    if own and "name" not in own:
        raise ConfigError("--set model.…: name the model, too, with --model")
    names = names_in(methods) or None
    target = out or Path("runs") / f"advise-{name}-{digest(spec, own, names, splits, rounds, baselines.value)[:6]}"
    if "path" in spec:
        check_output(target, Path(spec["path"]))
    display = SweepDisplay()
    use_compilation_cache()
    with stoppable(target):
        with display.shown(), table_kept():
            advice = ask(
                division_of(spec, Workbench(data_dir)),
                model=own or None,
                methods=names,
                splits=splits,
                rounds=rounds,
                baselines=baselines.value,
                out=target,
                command=this_command(),
                on_progress=display.progress,
                on_stage=display.say,
            )
        write_advice(advice, target)
        write_folder(target)
    print_advice(advice, target, as_json)
