"""The command `advise`: whether the clients of a table should federate, with what, and who gains or loses."""

import math
from collections.abc import Callable
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markdown import Markdown

from idiolect.cli.options import ClientColumn, DataDir, Json, LabelColumn, Out, assignments, check_output, data_spec
from idiolect.cli.stopping import stoppable, this_command
from idiolect.cli.terminal import console, print_file, print_json
from idiolect.core.errors import ConfigError
from idiolect.data.divide.division import smallest
from idiolect.data.federated import FederatedData
from idiolect.data.sets import registry as sources
from idiolect.report.html.render import PAGE
from idiolect.report.progress import SweepDisplay
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.advice.advise import Advice
from idiolect.study.advice.advise import advise as ask
from idiolect.study.advice.baselines import check_installed
from idiolect.study.advice.draws import TEST, VALIDATION, again
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import digest

_DIVISION = {"test": TEST, "validation": VALIDATION}


def advise(
    file: Annotated[str, typer.Argument(help="A table's file, or a name of 'idiolect list data'.")],
    client: ClientColumn = "client",
    label: LabelColumn = "label",
    model: Annotated[str, typer.Option("--model", help="See 'idiolect list models'.")] = "auto",
    methods: Annotated[
        str, typer.Option("--methods", help="Comma-separated, in addition to local and fedavg, which always run.")
    ] = "",
    splits: Annotated[int, typer.Option("--splits", help="Random divisions of each client's rows.")] = 8,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds at most; validation data choose.")] = 60,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the data or the model: data.minimum=20, model.l2=0.01."),
    ] = None,
    out: Out = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Advise whether to federate, with which method, and who gains or loses; with the uncertainty.

    If it is stopped, the same command resumes it.

    idiolect advise patients.csv --client hospital --label outcome

    idiolect advise school --splits 4 --rounds 30 --set data.minimum=20
    """
    from idiolect.report.advice import write_advice  # here: it loads slowly, and most commands never need it
    from idiolect.report.page import write_folder

    check_installed()
    spec, name = data_spec(file, client, label)
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
    names = [one.strip() for one in methods.split(",") if one.strip()] or None
    target = out or Path("runs") / f"advise-{name}-{digest(spec, own, names, splits, rounds)[:6]}"
    if "path" in spec:
        check_output(target, Path(spec["path"]))
    display = SweepDisplay()
    use_compilation_cache()
    with stoppable(target):
        with display.shown():
            advice = ask(
                division_of(spec, Workbench(data_dir)),
                model=own or None,
                methods=names,
                splits=splits,
                rounds=rounds,
                out=target,
                command=this_command(),
                on_progress=display.progress,
            )
        write_advice(advice, target)
        write_folder(target)
    print_advice(advice, target, as_json)


def print_advice(advice: Advice, folder: Path, as_json: bool) -> None:
    """Print an advice, and where its folder has the pages."""
    from idiolect.report.advice import page  # here: it loads slowly, and most commands never need it

    if as_json:
        print_json({**to_dict(advice), "folder": str(folder)})
        return
    console().print(Markdown(page(advice, figure=False)))
    console().print(f"page, tables, figure: {folder / 'advice.md'}", markup=False, highlight=False, soft_wrap=True)
    if (folder / PAGE).is_file():
        print_file("HTML page", folder / PAGE)


def division_of(spec: dict[str, Any], bench: Workbench) -> Callable[[int], FederatedData]:
    """A function that makes a source's division of a seed.

    A source with test, validation and split_seed divides its rows itself, so that features are scaled by each
    division's training rows; the rows of any other one, or of a table with a split column, are divided anew.
    """
    source = sources.SOURCES[spec["name"]]
    known = signature(source).parameters
    if not {"test", "validation", "split_seed"} <= {*known}:
        return again(bench.read(spec))
    given = {**_DIVISION, **spec}
    if spec["name"] == "table":
        given.setdefault("minimum", smallest(TEST))
        first = bench.read({**given, "split_seed": 0})
        if dict(first.provenance).get("partition", {}).get("name") == "split-column":
            return again(first)
    seed = int(spec.get("split_seed", 0))
    return lambda draw: bench.read({**given, "split_seed": seed + draw})


def to_dict(advice: Advice) -> dict[str, Any]:
    """The advice as plain values."""
    from idiolect.report.advice import answer  # here: it loads slowly, and most commands never need it

    decision = advice.decision
    plain = {
        "outcome": decision.outcome,
        "method": decision.method,
        "answer": answer(advice),
        "why": decision.why,
        "loss": advice.loss_name,
        **{key: _plain(getattr(decision, key)) for key in ("federated", "shared", "personal", "beyond")},
        "clients": [_plain(one) for one in decision.clients],
        "lines": [_plain(one) for one in advice.lines],
        "notes": list(advice.notes),
    }
    return _finite(plain)


def _plain(value: Any) -> Any:
    return None if value is None else asdict(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
