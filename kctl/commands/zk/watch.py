"""`kctl zk watch`."""

import asyncio
import sys
from typing import Annotated

import typer

from kctl.admin.metadata_place import Place, zookeeper_place
from kctl.admin.znode_watching import watch_znode
from kctl.cli.arguments.zookeeper import ZooKeeperOption, zookeeper_of
from kctl.cli.errors import ExitStatus, usage, usage_error
from kctl.cli.options import Session, session_of
from kctl.cli.output import OutputFormat
from kctl.cli.times import now_ms, parse_duration_ms
from kctl.commands.zk.arguments import Path
from kctl.views.events import event_json, event_line


def watch(
    ctx: typer.Context,
    path: Path,
    count: Annotated[
        int | None,
        typer.Option("-n", "--count", min=1, help="Exit after this many changes."),
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="Exit after this time.")
    ] = None,
    zookeeper: ZooKeeperOption = None,
) -> None:
    """Follow one znode: its data, its creation and deletion, and its children.

    Prints the present state, then one line per change until Ctrl-C, -n or --for; -o jsonl prints
    JSON. Uses ZooKeeper's watches: of changes in quick succession only the last state is seen.
    """
    session = session_of(ctx)
    if session.output in (OutputFormat.CSV, OutputFormat.YAML, OutputFormat.NAME):
        raise usage_error(f"changes cannot be shown as {session.output}", "use -o jsonl")
    limit_s = None if duration is None else usage(parse_duration_ms, duration) / 1000
    place = zookeeper_place(zookeeper_of(session, zookeeper), session.timeout)
    try:
        asyncio.run(_follow(session, place, path, count, limit_s))
    except KeyboardInterrupt:
        raise typer.Exit(ExitStatus.INTERRUPTED) from None


async def _follow(
    session: Session, place: Place, path: str, count: int | None, limit_s: float | None
) -> None:
    write = event_line if session.output.is_for_people else event_json
    found = watch_znode(place, path)
    shown = -1  # the first one is the present state
    try:
        async with asyncio.timeout(limit_s):
            async for event in found:
                session.out.safe_lines([write(event, now_ms())])
                sys.stdout.flush()  # the reader of the pipe is waiting for it
                shown += 1
                if shown == count:
                    return
    except TimeoutError:
        return
    finally:
        await found.aclose()
