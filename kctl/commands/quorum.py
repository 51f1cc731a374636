"""`kctl quorum`: the KRaft quorum."""

from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.quorum import describe_quorum
from kctl.cli.command_tree import command, noun
from kctl.cli.options import KafkaText, session_of
from kctl.cli.times import now_ms
from kctl.model.quorum import Quorum
from kctl.views.kafka_text.quorum import replication_lines, status_lines
from kctl.views.quorum import (
    REPLICATION_COLUMNS,
    STATUS_COLUMNS,
    replication_row,
    status_record,
)

app = noun("Describe the KRaft quorum: the controllers and the metadata log.")


@app.callback(invoke_without_command=True)
def quorum(ctx: typer.Context) -> None:
    """Without a verb, show the status of the quorum."""
    if ctx.invoked_subcommand is None:
        status(ctx)


@command(app, "status", examples=["kctl quorum status", "kctl quorum status --format kafka"])
def status(ctx: typer.Context, text_format: KafkaText = None) -> None:
    """Show the leader of the quorum, its epoch, the voters and how far they are behind.

    The leader is the active controller. Clusters that use ZooKeeper have no quorum.
    """
    session = session_of(ctx)
    cluster_id, found = ask(session, _with_cluster_id)
    if text_format:
        session.out.lines(status_lines(cluster_id, found))
        return
    session.out.record(status_record(cluster_id, found), STATUS_COLUMNS, name="leader_id")


async def _with_cluster_id(client: Client) -> tuple[str | None, Quorum]:
    found = await describe_quorum(client)
    await client.refresh_metadata()
    return client.cluster.cluster_id, found


@command(
    app,
    "replication",
    examples=["kctl quorum replication", "kctl quorum replication -o json"],
)
def replication(
    ctx: typer.Context,
    text_format: KafkaText = None,
    human_readable: Annotated[
        bool,
        typer.Option(
            "--human-readable", help="With --format kafka: times as `11 ms ago`.", hidden=True
        ),
    ] = False,
) -> None:
    """Show the replicas of the metadata log: leader, followers and observers, with their lag.

    Observers are brokers, and controllers that may not vote.
    """
    session = session_of(ctx)
    found = ask(session, describe_quorum)
    if text_format:
        session.out.lines(replication_lines(found, now_ms() if human_readable else None))
        return
    rows = [replication_row(found, one) for one in (*found.voters, *found.observers)]
    session.out.rows(rows, REPLICATION_COLUMNS, name="id")
