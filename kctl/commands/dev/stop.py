"""`kctl dev stop`, `kill`, `pause`, `resume` and `down`."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.errors import CliError
from kctl.cli.options import session_of
from kctl.commands.dev.arguments import BrokerId, State, known_broker
from kctl.dev.brokers import dev_brokers, state_directory, stop_all
from kctl.dev.security import dev_security
from kctl.dev.zookeeper import dev_zookeeper


def stop(
    ctx: typer.Context,
    broker_id: Annotated[
        int | None, typer.Argument(help="Id of the broker; all brokers if omitted.")
    ] = None,
    state: State = None,
) -> None:
    """Stop brokers by controlled shutdown. Their data is kept."""
    directory = state_directory(state)
    brokers = dev_brokers(directory) if broker_id is None else [known_broker(directory, broker_id)]
    for broker in stop_all(brokers):
        session_of(ctx).out.note(f"stopped broker {broker.broker_id}")


def kill(ctx: typer.Context, broker_id: BrokerId, state: State = None) -> None:
    """Kill a broker with SIGKILL, to simulate a crash."""
    broker = known_broker(state_directory(state), broker_id)
    if not broker.stop(by=signal.SIGKILL):
        raise CliError(f"broker {broker_id} is not running", "kctl dev start starts it")
    session_of(ctx).out.note(f"killed broker {broker_id}")


def pause(ctx: typer.Context, broker_id: BrokerId, state: State = None) -> None:
    """Pause a broker with SIGSTOP, to simulate a hang.

    It keeps its connections and its memory, but sends and answers nothing until `kctl dev resume`.
    Its ZooKeeper session expires if the pause exceeds zookeeper.session.timeout.ms.
    """
    _signal_one(state, broker_id, signal.SIGSTOP)
    session_of(ctx).out.note(f"paused broker {broker_id}")


def resume(ctx: typer.Context, broker_id: BrokerId, state: State = None) -> None:
    """Let a paused broker continue."""
    _signal_one(state, broker_id, signal.SIGCONT)
    session_of(ctx).out.note(f"resumed broker {broker_id}")


def _signal_one(state: Path | None, broker_id: int, number: signal.Signals) -> None:
    broker = known_broker(state_directory(state), broker_id)
    if not broker.process.signal(number):
        raise CliError(f"broker {broker_id} is not running", "kctl dev start starts it")


def down(
    ctx: typer.Context,
    delete_data: Annotated[
        bool, typer.Option("--delete-data", help="Delete the data of the brokers.")
    ] = False,
    state: State = None,
) -> None:
    """Stop all brokers and the ZooKeeper that was started with them."""
    directory = state_directory(state)
    brokers, zookeeper = dev_brokers(directory), dev_zookeeper(directory)
    stop_all(brokers)
    zookeeper.stop()
    if delete_data:
        for broker in brokers:
            broker.delete()
        zookeeper.delete()
        dev_security(directory).delete()
    session_of(ctx).out.note(
        "stopped; the data was deleted" if delete_data else "stopped; the data is kept"
    )
