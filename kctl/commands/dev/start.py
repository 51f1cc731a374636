"""`kctl dev start`."""

import typer

from kctl.cli.options import session_of
from kctl.commands.dev.arguments import BrokerId, State, known_broker
from kctl.dev.brokers import state_directory
from kctl.dev.zookeeper import dev_zookeeper


def start(ctx: typer.Context, broker_id: BrokerId, state: State = None) -> None:
    """Start a broker with its previous settings."""
    directory = state_directory(state)
    broker = known_broker(directory, broker_id)
    zookeeper = dev_zookeeper(directory)
    if zookeeper.exists and zookeeper.address in broker.properties_file.read_text():
        zookeeper.ensure_running()
    session_of(ctx).out.value("bootstrap_servers", broker.start())
