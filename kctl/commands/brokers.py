"""`kctl brokers`."""

import typer

from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.cli.command_tree import command, noun
from kctl.cli.options import session_of
from kctl.views.cluster import BROKER_COLUMNS, broker_rows

app = noun("List the brokers of the cluster.")


@command(
    app,
    "list",
    examples=[
        "kctl brokers list -b localhost:9092",
        "kctl brokers list -b localhost:9092 -o json",
    ],
)
def list_brokers(ctx: typer.Context) -> None:
    """List the brokers with their addresses and racks, and the controller."""
    session = session_of(ctx)
    cluster = ask(session, describe_cluster)
    session.out.rows(broker_rows(cluster), BROKER_COLUMNS, name="id")
