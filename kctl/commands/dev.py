"""`kctl dev`: a broker on this machine, for development and for trying things out."""

import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from kctl.dev.brokers import DevBroker, dev_broker, dev_brokers, state_directory
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, noun
from kctl.options import session_of
from kctl.tables import Column

app = noun("A broker on this machine, for development.")

COLUMNS = [
    Column("id", right=True),
    Column("status"),
    Column("address"),
    Column("pid", right=True),
    Column("data", wide=True),
    Column("log", wide=True),
]

BrokerId = Annotated[int, typer.Argument(help="The broker's id.")]
State = Annotated[
    Path | None,
    typer.Option("--dir", help="Where the brokers live instead of the user's state directory."),
]
_FOLLOW_PAUSE_S = 0.2


@command(
    app,
    "up",
    examples=["kctl dev up", "kctl dev up --port 9192 --set num.partitions=3"],
)
def up(
    ctx: typer.Context,
    port: Annotated[int, typer.Option(help="Where the broker listens; 0 is any free port.")] = 9092,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A broker setting; can be given again."),
    ] = None,
    state: State = None,
) -> None:
    """Start a broker with its data kept from one time to the next."""
    broker = dev_broker(state or state_directory(), 1)
    if broker.pid() is not None:
        raise CliError(
            f"broker 1 is running already on {broker.address()}", "kctl dev down stops it"
        )
    own = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "group.initial.rebalance.delay.ms": "0",
    }
    broker.write_settings(own | _parse_settings(settings or []))
    started = time.monotonic()
    address = broker.start()
    out = session_of(ctx).out
    out.note(f"started in {1000 * (time.monotonic() - started):.0f} ms; data in {broker.data}")
    out.value("bootstrap_servers", address)


def _parse_settings(settings: list[str]) -> dict[str, str]:
    pairs = {}
    for text in settings:
        key, separator, value = text.partition("=")
        if not (key and separator):
            raise CliError(
                f"{text!r} is not KEY=VALUE", "e.g. --set num.partitions=3", ExitStatus.USAGE
            )
        pairs[key.strip()] = value.strip()
    return pairs


@command(app, "status", examples=["kctl dev status", "kctl dev status -o json"])
def status(ctx: typer.Context, state: State = None) -> None:
    """Show the development brokers, running or not."""
    brokers = dev_brokers(state or state_directory())
    session_of(ctx).out.rows([_row(broker) for broker in brokers], COLUMNS, name="id")


def _row(broker: DevBroker) -> dict[str, object]:
    pid = broker.pid()
    return {
        "id": broker.broker_id,
        "status": "stopped" if pid is None else "running",
        "address": broker.address(),
        "pid": pid,
        "data": str(broker.data),
        "log": str(broker.log_file),
    }


@command(app, "start", examples=["kctl dev start 1"])
def start(ctx: typer.Context, broker_id: BrokerId, state: State = None) -> None:
    """Start a broker again with the settings it had."""
    address = dev_broker(state or state_directory(), broker_id).start()
    session_of(ctx).out.value("bootstrap_servers", address)


@command(app, "stop", examples=["kctl dev stop", "kctl dev stop 1"])
def stop(
    ctx: typer.Context,
    broker_id: Annotated[
        int | None, typer.Argument(help="The broker's id; all if left out.")
    ] = None,
    state: State = None,
) -> None:
    """Stop brokers cleanly; their data stays."""
    directory = state or state_directory()
    brokers = dev_brokers(directory) if broker_id is None else [_known(directory, broker_id)]
    for broker in brokers:
        if broker.stop():
            session_of(ctx).out.note(f"stopped broker {broker.broker_id}")


@command(app, "kill", examples=["kctl dev kill 1"])
def kill(ctx: typer.Context, broker_id: BrokerId, state: State = None) -> None:
    """End a broker as a crash would (kill -9), to see what happens."""
    broker = _known(state or state_directory(), broker_id)
    if not broker.stop(by=signal.SIGKILL):
        raise CliError(f"broker {broker_id} is not running", "kctl dev start starts it")
    session_of(ctx).out.note(f"killed broker {broker_id}")


@command(app, "down", examples=["kctl dev down", "kctl dev down --delete-data"])
def down(
    ctx: typer.Context,
    delete_data: Annotated[
        bool, typer.Option("--delete-data", help="Delete what the brokers have stored, too.")
    ] = False,
    state: State = None,
) -> None:
    """Stop all brokers."""
    for broker in dev_brokers(state or state_directory()):
        broker.stop()
        if delete_data:
            broker.delete()
    session_of(ctx).out.note("down; the data is deleted" if delete_data else "down; the data stays")


@command(app, "logs", examples=["kctl dev logs 1", "kctl dev logs 1 --follow"])
def logs(
    ctx: typer.Context,
    broker_id: Annotated[int, typer.Argument(help="The broker's id.")] = 1,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as it says more.")] = False,
    state: State = None,
) -> None:
    """Show what a broker says."""
    out = session_of(ctx).out
    with _known(state or state_directory(), broker_id).log_file.open(errors="replace") as log:
        while True:
            out.text(log.read())
            if not follow:
                return
            time.sleep(_FOLLOW_PAUSE_S)


def _known(state: Path, broker_id: int) -> DevBroker:
    broker = dev_broker(state, broker_id)
    if not broker.properties_file.exists():
        raise CliError(f"there is no broker {broker_id}", "kctl dev status lists those there are")
    return broker
