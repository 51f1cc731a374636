"""`kctl cluster`: the cluster as a whole."""

import typer

from kctl.admin.cluster import Cluster, describe_cluster
from kctl.admin.connection import ask
from kctl.groups import command, noun
from kctl.kafka_text.cluster import cluster_id_line
from kctl.options import KafkaText, session_of
from kctl.tables import Column

app = noun("The cluster as a whole.\n\nWithout a verb: describe it.")

COLUMNS = [
    Column("cluster_id", "Cluster id"),
    Column("controller_id", "Controller"),
    Column("brokers", "Brokers"),
]


@app.callback(invoke_without_command=True)
def cluster(ctx: typer.Context) -> None:
    """Describe the cluster when no verb is given."""

    if ctx.invoked_subcommand is None:
        describe(ctx)


@command(
    app,
    "describe",
    examples=["kctl cluster describe -b localhost:9092", "kctl cluster -b localhost:9092 -o yaml"],
)
def describe(ctx: typer.Context) -> None:
    """Show the cluster's id, its controller and its brokers."""
    session = session_of(ctx)
    found = ask(session, describe_cluster)
    session.out.record(_record(found), COLUMNS, name="cluster_id")


@command(
    app,
    "id",
    examples=[
        "kctl cluster id -b localhost:9092",
        "kctl cluster id -b localhost:9092 --format kafka",
    ],
)
def show_id(ctx: typer.Context, text_format: KafkaText = None) -> None:
    """Print the cluster's id and nothing else."""
    session = session_of(ctx)
    found = ask(session, describe_cluster)
    if text_format:
        session.out.lines([cluster_id_line(found)])
    else:
        session.out.value("cluster_id", found.cluster_id)


def _record(found: Cluster) -> dict[str, object]:
    return {
        "cluster_id": found.cluster_id,
        "controller_id": found.controller_id,
        "brokers": [f"{broker.host}:{broker.port}" for broker in found.brokers],
    }
