"""`kctl dev status`."""

import typer

from kctl.cli.options import session_of
from kctl.commands.dev.arguments import ZOOKEEPER, State
from kctl.dev.brokers import DevBroker, dev_brokers, state_directory
from kctl.dev.zookeeper import DevZooKeeper, dev_zookeeper
from kctl.views.dev import COLUMNS, server_row


def status(ctx: typer.Context, state: State = None) -> None:
    """List the development brokers and their ZooKeeper."""
    directory = state_directory(state)
    rows = [_row(broker) for broker in dev_brokers(directory)]
    zookeeper = dev_zookeeper(directory)
    if zookeeper.exists:
        rows.append(_zookeeper_row(zookeeper))
    session_of(ctx).out.rows(rows, COLUMNS, name="id")


def _row(broker: DevBroker) -> dict[str, object]:
    return server_row(
        broker.broker_id,
        broker.pid(),
        broker.address(),
        broker.data,
        broker.log_file,
        broker.admin_url(),
        software=broker.software,
    )


def _zookeeper_row(zookeeper: DevZooKeeper) -> dict[str, object]:
    pid = zookeeper.process.pid()
    address = None if pid is None else zookeeper.address
    data = zookeeper.directory / "data"
    return server_row(ZOOKEEPER, pid, address, data, zookeeper.log_file, software="ZooKeeper")
