"""Arguments of `kctl dev`, and the brokers they name."""

from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.errors import CliError
from kctl.dev.brokers import DevBroker, dev_broker

BrokerId = Annotated[int, typer.Argument(metavar="BROKER", help="Id of the broker.")]
State = Annotated[
    Path | None,
    typer.Option("--dir", help="Directory of the brokers instead of the user's state directory."),
]
ZOOKEEPER = "zookeeper"


def known_broker(state: Path, broker_id: int) -> DevBroker:
    """The broker with this id; CliError if `kctl dev up` has not created it."""
    broker = dev_broker(state, broker_id)
    if not broker.properties_file.exists():
        raise CliError(f"there is no broker {broker_id}", "kctl dev status lists the brokers")
    return broker
