"""`kctl cluster describe` and `kctl cluster id`."""

import typer

from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.admin.controllership import controllership_in
from kctl.admin.log_dirs import describe_log_dirs
from kctl.cli.arguments.zookeeper import ZooKeeperOption, zookeeper_of
from kctl.cli.options import KafkaText, session_of
from kctl.cli.output import OutputFormat
from kctl.model.cluster import Cluster
from kctl.model.log_dirs import LogDir
from kctl.views.cluster import CLUSTER_COLUMNS, cluster_record, cluster_tree
from kctl.views.kafka_text.cluster import cluster_id_line


def describe(ctx: typer.Context, zookeeper: ZooKeeperOption = None) -> None:
    """Show the cluster's id, controller and brokers.

    With --zookeeper, or the ZooKeeper of the context, also shows the controller epoch and when the
    controller was elected. In KRaft mode the epoch is that of the quorum's leader.

    With -o tree, also the log directories of each broker and how full their disks are.
    """
    session = session_of(ctx)
    if session.output is OutputFormat.TREE:
        session.out.tree(cluster_tree(*ask(session, _with_log_dirs, partial=True)))
        return
    found = ask(session, describe_cluster)
    known = None
    if zookeeper or session.active_context[1].zookeeper:
        known = controllership_in(zookeeper_of(session, zookeeper), session.timeout)
    session.out.record(cluster_record(found, known), CLUSTER_COLUMNS, name="cluster_id")


async def _with_log_dirs(client: Client) -> tuple[Cluster, list[LogDir]]:
    cluster = await describe_cluster(client)
    return cluster, await describe_log_dirs(client)


def show_id(ctx: typer.Context, text_format: KafkaText = None) -> None:
    """Print the cluster id."""
    session = session_of(ctx)
    found = ask(session, describe_cluster)
    if text_format:
        session.out.lines([cluster_id_line(found)])
    else:
        session.out.value("cluster_id", found.cluster_id)
