"""`kctl metadata`."""

import asyncio
from typing import Annotated

import typer

from kctl.admin.metadata_copy import (
    KINDS,
    CopyPlan,
    check_target,
    read_plan,
    write_plan,
)
from kctl.admin.metadata_place import ZOOKEEPER_SCHEME, Place
from kctl.cli.command_tree import command, noun
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.options import session_of
from kctl.views.metadata_copy import COLUMNS, copy_rows

app = noun("Copy the metadata of a cluster between stores.")


@command(
    app,
    "copy",
    examples=[
        "kctl metadata copy /var/lib/kctl zookeeper://zk1:2181/kafka --dry-run",
        "kctl metadata copy zookeeper://zk1:2181,zk2:2181/kafka /var/lib/kctl",
    ],
)
def copy(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM",
            help="Source: a broker's log directory, or zookeeper://HOST:PORT/CHROOT.",
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="TO", help="Target, in the same form; must not contain metadata."),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be copied without changing anything.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Copy even if brokers are running on FROM.")
    ] = False,
) -> None:
    """Copy topics, configs, ids and other metadata from one store to another.

    Together with the log directories, kctl-broker can replace Apache Kafka and vice versa: stop the
    brokers, copy the metadata, and start the others on the same directories. Registrations of
    brokers, the controller and change notifications are not copied.
    """
    session = session_of(ctx)
    if target.startswith(ZOOKEEPER_SCHEME) and not dry_run:
        refuse_if_read_only(session)
    session.out.options.require(COLUMNS)
    places = Place(source, session.timeout), Place(target, session.timeout)
    plan = asyncio.run(_copy(*places, dry_run=dry_run, live=live))
    rows = copy_rows(KINDS, plan.copied, plan.left_out)
    session.out.rows(rows, COLUMNS, name="what")
    done = "would be copied; nothing was changed" if dry_run else "copied"
    session.out.note(f"cluster {plan.cluster_id}: {sum(plan.copied.values())} znodes {done}")


async def _copy(source: Place, target: Place, *, dry_run: bool, live: bool) -> CopyPlan:
    plan = await read_plan(source, live=live)
    await check_target(target, plan.cluster_id)
    if not dry_run:
        await write_plan(target, plan)
    return plan
