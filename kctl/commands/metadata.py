"""`kctl metadata`: what a cluster knows of itself, where it is kept."""

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
from kctl.admin.metadata_place import Place
from kctl.groups import command, noun
from kctl.options import session_of
from kctl.tables import Column

app = noun("Where a cluster keeps its metadata.")

COLUMNS = [
    Column("what"),
    Column("copied", right=True),
    Column("left_out", right=True),
]


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
            metavar="FROM", help="A broker's directory, or zookeeper://HOST:PORT/CHROOT."
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="The same; there must be no metadata there yet.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be copied, and change nothing.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Copy although brokers are running on FROM.")
    ] = False,
) -> None:
    """Copy topics, configs, ids and the rest from one metadata store to another.

    With the log directories beside it, our broker goes on where Apache Kafka stopped, or Apache
    Kafka where ours did: stop the brokers, copy, start the others on the same directories.
    Registrations of brokers, the controller's seat and notes of changes are left out.
    """
    session = session_of(ctx)
    places = Place(source, session.timeout), Place(target, session.timeout)
    plan = asyncio.run(_copy(*places, dry_run=dry_run, live=live))
    session.out.rows(_rows(plan), COLUMNS, name="what")
    done = "would be copied; nothing was changed" if dry_run else "copied"
    session.out.note(f"cluster {plan.cluster_id}: {sum(plan.copied.values())} znodes {done}")


async def _copy(source: Place, target: Place, *, dry_run: bool, live: bool) -> CopyPlan:
    plan = await read_plan(source, live=live)
    await check_target(target, plan.cluster_id)
    if not dry_run:
        await write_plan(target, plan)
    return plan


def _rows(plan: CopyPlan) -> list[dict[str, object]]:
    return [
        {"what": kind, "copied": plan.copied.get(kind, 0), "left_out": plan.left_out.get(kind, 0)}
        for kind in KINDS
        if kind in plan.copied or kind in plan.left_out
    ]
