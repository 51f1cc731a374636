"""`kctl cluster describe` and `kctl cluster id`."""

import typer

from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.cli.options import KafkaText, session_of
from kctl.views.cluster import CLUSTER_COLUMNS, cluster_record
from kctl.views.kafka_text.cluster import cluster_id_line


def describe(ctx: typer.Context) -> None:
    """Show the cluster's id, controller and brokers."""
    session = session_of(ctx)
    found = ask(session, describe_cluster)
    session.out.record(cluster_record(found), CLUSTER_COLUMNS, name="cluster_id")


def show_id(ctx: typer.Context, text_format: KafkaText = None) -> None:
    """Print the cluster id."""
    session = session_of(ctx)
    found = ask(session, describe_cluster)
    if text_format:
        session.out.lines([cluster_id_line(found)])
    else:
        session.out.value("cluster_id", found.cluster_id)
