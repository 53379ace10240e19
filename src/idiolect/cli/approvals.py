"""The commands of a site's administrator for studies: approve, list, revoke."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from idiolect.cli.options import Json, file_path, folder_path
from idiolect.cli.terminal import console, print_json, print_outcome
from idiolect.core.errors import ConfigError, StoreError
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.deploy.site.config import SiteConfig

SiteFolder = Annotated[
    Path,
    typer.Argument(
        parser=folder_path,
        metavar="KIT",
        help="The site's kit, or the folder with its site.toml.",
        show_default=False,
    ),
]


def approve(
    study: Annotated[
        Path,
        typer.Argument(parser=file_path, metavar="STUDY", help="The hub's study.json.", show_default=False),
    ],
    kit_folder: SiteFolder,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without a question.")] = False,
    changed_rows: Annotated[
        bool,
        typer.Option("--changed-rows", help="The hub may learn how rows have changed since its last queries."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a study or a query in plain words, ask, and approve it: the site answers calls of approved ones only.

    Examples:
    idiolect site approve study.json north
    idiolect site approve study.json north --yes

    Writes: KIT/idiolect/approvals.json.
    """
    with loading():
        from idiolect.deploy.query import load_study
        from idiolect.deploy.site.approvals import QUERIES, Approvals, approve, check_member
        from idiolect.deploy.site.ledger import Ledger
        from idiolect.deploy.site.study_text import RISK, query_lines, study_lines
        from idiolect.deploy.study import Study, differences, shown
    folder, config = _site(kit_folder)
    asked = load_study(study)
    check_member(config.name, asked)
    known = Approvals.load(folder).of(asked.id)
    changed = (
        [] if known is None else [*differences(known.study.model_dump(mode="json"), asked.model_dump(mode="json"))]
    )
    if isinstance(asked, Study):
        lines = study_lines(asked, config)
    else:
        lines = query_lines(asked, config, Ledger(folder).counts(QUERIES, "models").get("", 0))
    if known is not None:
        state = "was approved here and revoked" if known.revoked else "is approved here"
        lines.append(f"A study of this id {state}, with {'the same content' if not changed else 'other content:'}")
        lines += [shown(f"  {one.field}: {one.approved} before, {one.asked} now", 400) for one in changed]
    if isinstance(asked, Study):
        lines.append(RISK.format(study=shlex.quote(str(study)), site=shlex.quote(str(kit_folder))))
    if changed_rows:
        lines.append("The hub may learn how rows have changed since its last queries (--changed-rows).")
    if not as_json:
        screen = console()
        for line in lines:
            screen.print(Text(line), soft_wrap=True)
    if isinstance(asked, Study):
        config.floors.check_study(config.name, asked)
    else:
        config.floors.check_query(config.name, asked)
    if not yes and not sys.stdin.isatty():
        raise ConfigError("nobody can answer here, so nothing is approved: read the study, then add --yes")
    if not yes and not typer.confirm("Approve this study?", err=True):
        raise StoreError(f"study {asked.id} is not approved")
    approve(folder, config.name, asked, changed_rows=changed_rows)
    value = {"site": config.name, "study": asked.id, "digest": asked.digest}
    value |= {"text": lines} if as_json else {}
    print_outcome(value, [f"approved: {asked.id}; compare the digest with the hub's administrator"], as_json)


def approvals(kit_folder: SiteFolder, as_json: Json = False) -> None:
    """List the studies and queries that the site has approved: id, digest, time, rounds or answers used, state.

    Examples:
    idiolect site approvals north
    idiolect site approvals north --json

    Writes: nothing.
    """
    with loading():
        from idiolect.deploy.site.approvals import TASKS, Approvals
        from idiolect.deploy.site.ledger import Ledger
        from idiolect.deploy.study import Study
    folder, _ = _site(kit_folder)
    found, ledger = Approvals.load(folder).approved, Ledger(folder)
    rows: list[dict[str, Any]] = []
    for one in found:
        training = isinstance(one.study, Study)
        used = [ledger.counts(one.study.id, task) for task in (("rounds",) if training else TASKS)]
        state = f"revoked {one.revoked}" if one.revoked else "approved"
        row = {
            "study": one.study.id,
            "digest": one.digest,
            "time": one.time,
            "state": state,
            "purpose": "train" if isinstance(one.study, Study) else one.study.purpose,
            "rounds": max(sum(of.values()) for of in used),
        }
        most = sum(run.rounds for run in one.study.runs) if isinstance(one.study, Study) else one.study.answers
        rows.append({**row, "of": most})
    if as_json:
        print_json({"approvals": rows})
        return
    table = Table(box=None)
    for name in ("study", "purpose", "digest", "approved", "rounds", "state"):
        table.add_column(name, justify="right" if name == "rounds" else "left")
    for row in rows:
        used = f"{row['rounds']:,} of {row['of']:,}"
        cells = (row["study"], row["purpose"], row["digest"][:12], row["time"], used, row["state"])
        table.add_row(*(Text(str(cell)) for cell in cells))
    if rows:
        console().print(table)
    else:
        print("this site has approved no study: 'idiolect site approve' does, with the hub's study.json")


def revoke(
    kit_folder: SiteFolder,
    study: Annotated[str, typer.Argument(metavar="ID", help="The study's id.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Take an approval back: from now on the site refuses every call of the study, also in a run in progress.

    Examples:
    idiolect site revoke north hospitals-1a2b3c4d
    idiolect site revoke north hospitals-1a2b3c4d --json

    Writes: KIT/idiolect/approvals.json.
    """
    with loading():
        from idiolect.deploy.site.approvals import revoke
    folder, config = _site(kit_folder)
    gone = revoke(folder, study)
    lines = [f"revoked: {study}; what was sent before stays with the hub, and the private state stays here"]
    print_outcome({"site": config.name, "study": study, "revoked": gone.revoked}, lines, as_json)


def _site(folder: Path) -> "tuple[Path, SiteConfig]":
    """The folder with a site's configuration, and this; of a kit, or the folder itself."""
    from idiolect.deploy.nvflare.kits import read_kit, require_kind
    from idiolect.deploy.site.config import FILE, SiteConfig

    if (folder / FILE).is_file():
        return folder, SiteConfig.load(folder)
    kit = read_kit(folder)
    require_kind(kit, "client")
    return kit.site, SiteConfig.load(kit.site)
