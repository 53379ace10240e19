"""The commands of a site: made, checked, run, and what has left it."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from idiolect.cli.approvals import approvals, approve, revoke
from idiolect.cli.kits import KitFolder, Metrics, site_kit
from idiolect.cli.options import Json, check_output, file_path, folder_path, names_in, one_table
from idiolect.cli.renewal import InstallFile, RequestFile, renewed
from idiolect.cli.site_operation import accept_changes, combine, leave, service, status, stop
from idiolect.cli.terminal import console, print_json, print_outcome
from idiolect.core.errors import StoreError, require, unknown
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.deploy.nvflare.kits import Kit

app = typer.Typer(
    no_args_is_help=True, help="A site of a federation; its data stay on this machine.", rich_markup_mode="rich"
)

for command in (approve, approvals, revoke, stop, status, combine, accept_changes, leave, service):
    app.command()(command)


@app.command()
def init(
    kit_folder: KitFolder,
    table: Annotated[
        str | None,
        typer.Argument(metavar="TABLE", help="The site's table, or an .npz file of arrays.", show_default=False),
    ] = None,
    data: Annotated[str | None, typer.Option("--data", metavar="FILE", help="The same, as an option.")] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", parser=file_path, metavar="FILE", help="The schema, if none is agreed on."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COLUMN", help="The label column, if it has another name here."),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option("--client", metavar="COLUMN", help="The client column; '' if all rows are the site's."),
    ] = None,
    split: Annotated[str | None, typer.Option("--split", metavar="COLUMN", help="The column of splits.")] = None,
    test: Annotated[
        float | None, typer.Option("--test", metavar="SHARE", help="Share of test rows (default: 0.25).")
    ] = None,
    validation: Annotated[
        float | None, typer.Option("--validation", metavar="SHARE", help="Share of validation rows (default: 0.1).")
    ] = None,
    allow_methods: Annotated[
        str,
        typer.Option("--allow-methods", metavar="METHODS", help="Methods that a hub may ask for, comma-separated."),
    ] = "all",
    evaluation: Annotated[
        bool, typer.Option("--evaluation/--no-evaluation", help="Allow sums of scores to be sent.")
    ] = True,
    summaries: Annotated[bool, typer.Option("--allow-summaries", help="Allow sums of columns to be sent.")] = False,
    count: Annotated[
        int, typer.Option("--smallest-count", min=1, metavar="N", help="Smallest count in any statistic (a floor).")
    ] = 5,
    neighbours: Annotated[
        str,
        typer.Option("--neighbours", metavar="SITES", help="Sites with which models are exchanged, comma-separated."),
    ] = "all",
    as_json: Json = False,
) -> None:
    """Make a site of a kit: harden it, and write what it allows to KIT/idiolect/site.toml. No data are copied.

    Examples:
    idiolect site init north patients.csv --label diagnosis --client ''
    idiolect site init north own.csv --schema s.json --allow-methods fedavg

    Writes: KIT/idiolect/site.toml; the kit's other files become readable only for its owner.
    """
    source = file_path(one_table(table, data))
    with loading():
        from idiolect.algorithms.registry import ALGORITHMS
        from idiolect.deploy.nvflare.kits import harden
        from idiolect.deploy.site.create import site_config, write_site
    kit = site_kit(kit_folder)
    check_output(kit.site / "site.toml", source, *([] if schema is None else [schema]), option="KIT")
    methods = tuple(names_in(allow_methods))
    for name in methods:
        if name != "all" and name not in ALGORITHMS:
            raise unknown("method", name, list(ALGORITHMS))
    for option, share in (("--test", test), ("--validation", validation)):
        require(share is None or 0 <= share < 1, f"{option} {share}: a share lies from 0 to below 1")
    allow: dict[str, Any] = {"methods": methods, "evaluation": evaluation, "summaries": summaries}
    allow |= {"neighbours": tuple(names_in(neighbours))}
    own = {"label": label, "client": client, "split": split, "test": test, "validation": validation}
    config = site_config(kit.site, kit.name, source, allow, schema, {"count": count}, **own)
    changed = harden(kit.folder)
    write_site(kit.site, config)
    lines = [
        f"site '{kit.name}': {kit.site / 'site.toml'}",
        f"hardened: {', '.join(changed) or 'it was before'}",
        f"to check it: idiolect site check {shlex.quote(str(kit_folder))}",
        f"to answer a hub's study: idiolect site approve study.json {shlex.quote(str(kit_folder))}",
    ]
    value = {"site": kit.name, "configuration": str(kit.site / "site.toml"), "hardened": list(changed)}
    print_outcome(value, lines, as_json)


@app.command()
def check(kit_folder: KitFolder, as_json: Json = False) -> None:
    """Prove that the site can take part: certificate, connection, data, memory and disk, a line each.

    Examples:
    idiolect site check north
    idiolect site check north --json

    Writes: nothing.
    """
    _check(site_kit(kit_folder), as_json=as_json)


@app.command()
def run(kit_folder: KitFolder, metrics: Metrics = None) -> None:
    """Check, then take part until Ctrl-C or SIGTERM; for a service, too.

    Examples:
    idiolect site run north
    idiolect site run kits/north

    Writes: models, private states and log.txt in KIT; `idiolect site log` lists all that is sent.
    """
    with loading():
        from idiolect.core.rights import restrict
        from idiolect.deploy.nvflare.jobs import clean_jobs
        from idiolect.deploy.nvflare.kits import certificate
        from idiolect.deploy.nvflare.processes import run as run_process
        from idiolect.deploy.nvflare.processes import running, watched
        from idiolect.deploy.site.config import SiteConfig
        from idiolect.deploy.site.monitor import SiteMonitor
    kit = site_kit(kit_folder)
    with watched(kit):
        _check(kit, may_wait=("connection",))
        restrict(kit.folder)  # what an older idiolect or another program has written there
        clean_jobs(kit)
        expires = certificate(kit).not_after
        monitor = SiteMonitor(kit.site, SiteConfig.load(kit.site).alert, expires, lambda: running(kit))
        with monitor.watching(metrics):
            print(f"site '{kit.name}' takes part; end with Ctrl-C", flush=True)
            code = run_process(kit, report=lambda line: print(line, file=sys.stderr, flush=True))
            if code:
                raise StoreError(f"the site's process has ended with status {code}; see {kit.folder / 'log.txt'}")


@app.command()
def renew(
    kit_folder: KitFolder, request: RequestFile = None, install: InstallFile = None, as_json: Json = False
) -> None:
    """Renew the site's certificate before it expires; the key stays in the kit.

    First --request writes a file for the holder of the federation's root key, who makes a certificate of it with
    'idiolect hub sign'. Then --install puts the certificate into the kit.

    Examples:
    idiolect site renew north --request north.request
    idiolect site renew north --install north.crt

    Writes: the request, or the certificate in KIT; the old one stays next to it.
    """
    renewed(kit_folder, request, install, ("client",), as_json)


@app.command()
def log(
    kit_folder: KitFolder,
    round: Annotated[int | None, typer.Option("--round", min=1, metavar="N", help="Only this round.")] = None,
    terms: Annotated[bool, typer.Option("--terms", help="Show the settings that the hub asked for instead.")] = False,
    as_json: Json = False,
) -> None:
    """Show all that has left the site: when, to whom, for what, how many bytes, and totals.

    With --terms: the settings of each run that a hub has asked for, and how many messages were answers to them.

    Examples:
    idiolect site log north --round 3
    idiolect site log north --terms

    Writes: nothing.
    """
    from idiolect.deploy.site.outbox import Outbox

    kit = site_kit(kit_folder)
    require(round is None or not terms, "--terms shows whole runs: leave --round out")
    outbox = Outbox(kit.site / "sent.jsonl")
    lines = list(outbox.lines())
    if terms:
        print_terms(outbox.terms(), lines, as_json)
        return
    if round is not None:
        lines = [line for line in lines if line.get("round") == round - 1 and line["task"] in ("round", "exchange")]
    if as_json:
        print_json({"messages": lines, "bytes": sum(int(line["bytes"]) for line in lines)})
        return
    print_log(lines)


def print_log(lines: Sequence[dict[str, Any]]) -> None:
    """Print a line for each message, then the totals by task."""
    table, totals = Table(box=None), dict[str, tuple[int, int]]()
    for name in ("time", "to", "task", "run", "round", "bytes", "what"):
        table.add_column(name, justify="right" if name in ("round", "bytes") else "left")
    for line in lines:
        task, size = str(line["task"]), int(line["bytes"])
        of_round = str(int(line["round"]) + 1) if task in ("round", "exchange") and "round" in line else ""
        cells = [str(line["time"])[:19], line["to"], task, line.get("run", line["header"].get("run", "")), of_round]
        table.add_row(*(Text(str(cell)) for cell in (*cells, f"{size:,}", _what(line))))
        count, sum_ = totals.get(task, (0, 0))
        totals[task] = count + 1, sum_ + size
    screen = console()
    screen.print(table)
    for line in lines:
        for entry in line.get("listing", ()):
            screen.print(Text(f"  {entry}"), soft_wrap=True)
    for task, (count, size) in totals.items():
        print(f"{task}: {count} messages, {size:,} bytes")
    if not lines:
        print("this site has sent nothing")


def print_terms(terms: dict[str, dict[str, Any]], lines: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print the settings of each run: method, model, and what decides the draws; first the hash and the run."""
    counts = Counter(str(line.get("terms", "")) for line in lines)
    if as_json:
        print_json({"terms": [{"sha256": key, "messages": counts[key], **of} for key, of in terms.items()]})
        return
    screen = console()
    for key, of in terms.items():
        asked = of["terms"]
        head = f"{key[:12]}  {asked['run']}  {str(of['time'])[:19]}  messages: {counts[key]}"
        rest = {name: value for name, value in asked.items() if name not in ("run", "method", "model", "kind")}
        screen.print(Text(head), soft_wrap=True)
        for name, values in (("method", asked["method"]), ("model", asked["model"]), ("run", rest)):
            shown = ", ".join(f"{setting} = {json.dumps(value)}" for setting, value in values.items())
            screen.print(Text(f"  {name}: {shown}"), soft_wrap=True)
    if not terms:
        print("no hub has asked for a run yet")


def _what(line: dict[str, Any]) -> str:
    """What a message held: an error, vectors, or the header's names."""
    if error := line["header"].get("error"):
        return f"error: {error}"
    vectors = [f"{name} {kind}{shape}" for name, (kind, shape) in line["vectors"].items()]
    named = [name for name in line["header"] if name not in ("run", "round")]
    words = ", ".join([*named, *vectors[:3]])
    return words + (f" and {len(vectors) - 3} more" if len(vectors) > 3 else "")


@app.command()
def summary(kit_folder: KitFolder, as_json: Json = False) -> None:
    """Print what would be sent to agree on a schema; nothing is sent.

    Examples:
    idiolect site summary north
    idiolect site summary north --json

    Writes: nothing.
    """
    with loading():
        from idiolect.deploy.schema.summary import listing
        from idiolect.deploy.site.config import SiteConfig
        from idiolect.deploy.site.data import own_names, own_summary
        from idiolect.deploy.site.trainer import own_of
    kit = site_kit(kit_folder)
    config = SiteConfig.load(kit.site)
    own = own_of({"folder": str(kit.site), "data": config.data, "name": config.name})
    lines, allowed = list(listing(own_summary(own, own_names(own), config.floors.count))), config.allow.summaries
    refusal = "the site does not allow it to be sent: 'idiolect site init' with --allow-summaries does"
    print_outcome({"allowed": allowed, "summary": lines}, lines if allowed else [*lines, refusal], as_json)


@app.command()
def risk(
    study_file: Annotated[
        Path, typer.Argument(parser=file_path, metavar="STUDY", help="The study's file.", show_default=False)
    ],
    folder: Annotated[
        Path,
        typer.Argument(
            parser=folder_path,
            metavar="KIT",
            help="The site's kit, or the folder with site.toml.",
            show_default=False,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Attack the messages of a study on the site's own rows, before anything is sent.

    The result is a line per method: rows of a step and of a message, the rank of the update, and what the attacks
    found. "This attack found nothing" is no proof: other attacks may find more.

    Examples:
    idiolect site risk study.json north
    idiolect site risk study.json north --json

    Writes: nothing.
    """
    from idiolect.deploy.headers import Risk
    from idiolect.deploy.site.assess import assessed
    from idiolect.deploy.study import Study

    study = Study.load(study_file)
    site = folder if (folder / "site.toml").is_file() else site_kit(folder).site
    results: list[tuple[str, Risk]] = []
    with loading():
        results.extend(assessed(study, site))
    if as_json:
        print_json({"study": study.id, "runs": [{"run": run, **of.model_dump(mode="json")} for run, of in results]})
        return
    table = Table(box=None)
    for name in ("run", "rows", "per step", "per message", "rank", "largest", "rows found"):
        table.add_column(name, justify="left" if name == "run" else "right")
    for run, of in results:
        numbers = (of.rows, of.step, of.message_rows, of.rank, of.largest_rank, of.found)
        table.add_row(Text(run), *("-" if number is None else f"{number:,}" for number in numbers))
    screen = console()
    screen.print(table)
    for run, of in results:
        screen.print(Text(f"{run}: {of.verdict}"), soft_wrap=True)
        if of.refusal:
            screen.print(Text(f"  {of.refusal}"), soft_wrap=True)


def _check(kit: "Kit", may_wait: Sequence[str] = (), as_json: bool = False) -> None:
    """Print all findings. Raises `StoreError` if one is bad; may_wait: what the site itself tries again."""
    from idiolect.deploy.nvflare.checks import site_checks

    screen, bad, findings = console(), list[str](), list[dict[str, Any]]()
    for found in site_checks(kit):
        findings.append({"what": found.what, "good": found.good, "line": found.line})
        mark = ("✓", "green") if found.good else ("✗", "red")
        if not as_json:
            screen.print(Text.assemble(mark, f" {found.what}: {found.line}"), soft_wrap=True)
        bad += [] if found.good or found.what in may_wait else [found.what]
    if as_json:
        print_json({"site": kit.name, "ready": not bad, "findings": findings})
    if bad:
        raise StoreError(f"site '{kit.name}' is not ready: {', '.join(bad)}")
