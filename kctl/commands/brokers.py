"""`kctl brokers`: the members of the cluster."""

import typer

from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.groups import command, noun
from kctl.options import session_of
from kctl.tables import Column

app = noun("The brokers of the cluster.")

COLUMNS = [
    Column("id", right=True),
    Column("host"),
    Column("port", right=True),
    Column("rack"),
    Column("controller"),
]


@command(
    app,
    "list",
    examples=[
        "kctl brokers list -b localhost:9092",
        "kctl brokers list -b localhost:9092 -o json",
    ],
)
def list_brokers(ctx: typer.Context) -> None:
    """List the brokers: where they listen, their racks, and which one is the controller."""
    session = session_of(ctx)
    cluster = ask(session, describe_cluster)
    rows = [
        {
            "id": broker.id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "controller": broker.id == cluster.controller_id,
        }
        for broker in cluster.brokers
    ]
    session.out.rows(rows, COLUMNS, name="id")
