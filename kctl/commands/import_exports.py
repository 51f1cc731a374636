"""`kctl import`: topics restored from exports."""

from typing import Annotated

import typer

from kctl.cli.command_tree import command, lone_command
from kctl.cli.confirmation import DryRun
from kctl.cli.errors import usage_error
from kctl.cli.options import session_of
from kctl.cli.tables import partition_name
from kctl.streaming.choices import Compression
from kctl.views.imports import COLUMNS

app = lone_command()


@command(
    app,
    "import",
    examples=[
        "kctl import /data/orders",
        "kctl import /data/orders orders --rename orders=orders-restored --groups",
        "kctl import s3://lake/orders --dry-run",
    ],
)
def import_(
    ctx: typer.Context,
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="Directory of exports: a local path, or a URL (s3://, gs://)."
        ),
    ],
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC…", help="Topics to restore (default: all).", show_default=False
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC=NAME", help="Restore a topic under another name; can be repeated."
        ),
    ] = None,
    exports: Annotated[
        list[int] | None,
        typer.Option(
            "--export", metavar="N", min=1, help="Restore only this export; can be repeated."
        ),
    ] = None,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups", help="Restore the committed offsets of groups that the export has saved."
        ),
    ] = False,
    configs: Annotated[
        bool, typer.Option(help="Create topics with the configs that the export has saved.")
    ] = True,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Replication factor of new topics (default: as exported)."
        ),
    ] = None,
    append: Annotated[
        bool,
        typer.Option("--append", help="Import into a topic even if it contains other records."),
    ] = False,
    missing_timestamps: Annotated[
        str,
        typer.Option(
            metavar="fail|now",
            help="What to do with records that have no timestamp, or one before 1970: fail, or "
            "write them with the current time.",
        ),
    ] = "fail",
    compression: Annotated[
        Compression,
        typer.Option("-z", "--compression", help="Compression type of the record batches."),
    ] = Compression.NONE,
    dry_run: DryRun = False,
) -> None:
    """Restore topics from the exports of kctl spark-export.

    Keys, values, headers, timestamps and partitions are those of the export. Topics that do not
    exist are created with the partitions, replication factor and configs of the exported ones.
    Files are checked against their checksums first.

    Every record is written exactly once, by transactions that also record the progress of the
    import. The same command continues a run that failed or was killed, and adds increments that
    were exported later. Consumers should read with isolation.level=read_committed.

    Offsets differ from the exported ones. --groups commits the offsets that were saved by
    `kctl spark-export --groups`, translated to the new offsets. Groups with members are refused.

    While records are written, a new topic has retention.ms=-1, cleanup.policy=delete and
    message.timestamp.type=CreateTime, so that nothing is lost; its configs are restored at the end.
    Values that were decoded with --value json and a schema cannot be restored.
    """
    # Imported here because importing Arrow takes longer than most commands run.
    from kctl.restore.run import ImportRequest, import_exports

    if missing_timestamps not in ("fail", "now"):
        raise usage_error(
            f"--missing-timestamps {missing_timestamps}: unknown", "choose from fail, now"
        )
    session = session_of(ctx)
    request = ImportRequest(
        directory,
        tuple(topics or ()),
        tuple(exports or ()),
        _renames(rename or []),
        groups,
        configs,
        append,
        replication_factor,
        missing_timestamps == "now",
        compression,
        dry_run,
    )
    rows = import_exports(request, session)
    session.out.rows(rows, COLUMNS, name=partition_name)
    if not dry_run:
        session.out.note(f"{sum(row['records'] for row in rows)} records imported")


def _renames(texts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, new = text.partition("=")
        if not (name and equals and new):
            raise usage_error(f"--rename {text}: expected TOPIC=NAME", "e.g. orders=restored")
        found[name] = new
    return found
