"""`kctl dev`: brokers on this machine, for development and for trying things out."""

import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from kctl.dev.brokers import (
    DevBroker,
    dev_broker,
    dev_brokers,
    start_all,
    state_directory,
    stop_all,
)
from kctl.dev.zookeeper import DevZooKeeper, dev_zookeeper
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, noun
from kctl.options import session_of
from kctl.tables import Column

app = noun("Brokers on this machine, for development: one, or a cluster.")

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
ZOOKEEPER = "zookeeper"
_FOLLOW_PAUSE_S = 0.2


@command(
    app,
    "up",
    examples=[
        "kctl dev up",
        "kctl dev up --port 9192 --set num.partitions=3",
        "kctl dev up --brokers 3",
        "kctl dev up --brokers 3 --zookeeper zk1:2181/trial",
    ],
)
def up(
    ctx: typer.Context,
    port: Annotated[
        int,
        typer.Option(help="Where the first broker listens, others above it; 0 is any free port."),
    ] = 9092,
    brokers: Annotated[
        int, typer.Option(min=1, max=99, help="How many; more than one need a ZooKeeper.")
    ] = 1,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT/CHROOT",
            help="A ZooKeeper that runs already, instead of one started here. With --set: "
            "zookeeper.auth.digest=USER:PASSWORD, zookeeper.ssl.client.enable and the PEM files "
            "zookeeper.ssl.truststore.location and zookeeper.ssl.keystore.location.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A broker setting; can be given again."),
    ] = None,
    state: State = None,
) -> None:
    """Start brokers with their data kept from one time to the next.

    One broker keeps its metadata itself. Several form a cluster on a ZooKeeper, which is started
    too (from PySpark's jars, on Java 17 or newer) unless one is named.
    """
    directory = state or state_directory()
    wanted = [dev_broker(directory, broker_id) for broker_id in range(1, brokers + 1)]
    is_cluster = brokers > 1 or zookeeper is not None
    _check_none_runs(dev_brokers(directory))
    _check_kind(dev_brokers(directory), is_cluster)
    own = {"group.initial.rebalance.delay.ms": "0"} | _parse_settings(settings or [])
    started = time.monotonic()
    if is_cluster:
        own = _cluster(directory, zookeeper, brokers) | own
    for number, broker in enumerate(wanted):
        listens = {"listeners": f"PLAINTEXT://127.0.0.1:{port + number if port else 0}"}
        broker.write_settings(listens | own)
    addresses = _start(wanted)
    out = session_of(ctx).out
    what = f"{brokers} brokers" if brokers > 1 else "broker"
    out.note(f"{what} started in {1000 * (time.monotonic() - started):.0f} ms; data in {directory}")
    out.value("bootstrap_servers", ",".join(addresses))


def _check_none_runs(brokers: list[DevBroker]) -> None:
    for broker in brokers:
        if broker.pid() is not None:
            raise CliError(
                f"broker {broker.broker_id} is running already on {broker.address()}",
                "kctl dev down stops it",
            )


def _check_kind(before: list[DevBroker], is_cluster: bool) -> None:
    """What was a cluster cannot go on as one broker, nor the other way round."""
    was_cluster = [broker.is_in_cluster for broker in before]
    if before and any(was_cluster) and not is_cluster:
        raise CliError(
            f"the data here is of a cluster of {len(before)} brokers",
            f"kctl dev up --brokers {len(before)} starts it; kctl dev down --delete-data ends it",
        )
    if before and not any(was_cluster) and is_cluster:
        raise CliError(
            "the data here is of one broker without a ZooKeeper",
            "kctl dev up starts it; kctl dev down --delete-data ends it; or name another --dir",
        )


def _cluster(state: Path, zookeeper: str | None, brokers: int) -> dict[str, str]:
    """The settings of a cluster, with a ZooKeeper behind it that runs."""
    from kctl.dev.cluster import cluster_settings

    if zookeeper is None:
        server = dev_zookeeper(state)
        server.ensure_running()
        zookeeper = server.address
    return cluster_settings(zookeeper, brokers)


def _start(brokers: list[DevBroker]) -> list[str]:
    """Start all, or none; gives their addresses when they work together."""
    try:
        addresses = start_all(brokers)
        if len(brokers) > 1:
            from kctl.dev.cluster import wait_until_ready

            wait_until_ready(addresses)
    except CliError:
        stop_all(brokers)
        raise
    return addresses


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
    """Show the development brokers, running or not, and their ZooKeeper if they have one."""
    directory = state or state_directory()
    rows = [_row(broker) for broker in dev_brokers(directory)]
    zookeeper = dev_zookeeper(directory)
    if zookeeper.exists:
        rows.append(_zookeeper_row(zookeeper))
    session_of(ctx).out.rows(rows, COLUMNS, name="id")


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


def _zookeeper_row(zookeeper: DevZooKeeper) -> dict[str, object]:
    pid = zookeeper.process.pid()
    return {
        "id": ZOOKEEPER,
        "status": "stopped" if pid is None else "running",
        "address": None if pid is None else zookeeper.address,
        "pid": pid,
        "data": str(zookeeper.directory / "data"),
        "log": str(zookeeper.log_file),
    }


@command(app, "start", examples=["kctl dev start 1"])
def start(ctx: typer.Context, broker_id: BrokerId, state: State = None) -> None:
    """Start a broker again with the settings it had."""
    directory = state or state_directory()
    broker = _known(directory, broker_id)
    zookeeper = dev_zookeeper(directory)
    if zookeeper.exists and zookeeper.address in broker.properties_file.read_text():
        zookeeper.ensure_running()
    session_of(ctx).out.value("bootstrap_servers", broker.start())


@command(app, "stop", examples=["kctl dev stop", "kctl dev stop 1"])
def stop(
    ctx: typer.Context,
    broker_id: Annotated[
        int | None, typer.Argument(help="The broker's id; all if left out.")
    ] = None,
    state: State = None,
) -> None:
    """Stop brokers cleanly: in a cluster each hands over what it leads. Their data stays."""
    directory = state or state_directory()
    brokers = dev_brokers(directory) if broker_id is None else [_known(directory, broker_id)]
    for broker in stop_all(brokers):
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
        bool, typer.Option("--delete-data", help="Delete what they have stored, too.")
    ] = False,
    state: State = None,
) -> None:
    """Stop all brokers, then their ZooKeeper if it was started here."""
    directory = state or state_directory()
    brokers, zookeeper = dev_brokers(directory), dev_zookeeper(directory)
    stop_all(brokers)
    zookeeper.stop()
    if delete_data:
        for broker in brokers:
            broker.delete()
        zookeeper.delete()
    session_of(ctx).out.note("down; the data is deleted" if delete_data else "down; the data stays")


@command(
    app,
    "logs",
    examples=["kctl dev logs 1", "kctl dev logs 1 --follow", "kctl dev logs zookeeper"],
)
def logs(
    ctx: typer.Context,
    server: Annotated[str, typer.Argument(help=f"The broker's id, or {ZOOKEEPER}.")] = "1",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as it says more.")] = False,
    state: State = None,
) -> None:
    """Show what a broker or the ZooKeeper says."""
    out = session_of(ctx).out
    with _log_file(state or state_directory(), server).open(errors="replace") as log:
        while True:
            out.text(log.read())
            if not follow:
                return
            time.sleep(_FOLLOW_PAUSE_S)


def _log_file(state: Path, server: str) -> Path:
    zookeeper = dev_zookeeper(state)
    if server == ZOOKEEPER and zookeeper.exists:
        return zookeeper.log_file
    if not server.isdecimal():
        raise CliError(f"there is no {server}", "kctl dev status lists those there are")
    return _known(state, int(server)).log_file


def _known(state: Path, broker_id: int) -> DevBroker:
    broker = dev_broker(state, broker_id)
    if not broker.properties_file.exists():
        raise CliError(f"there is no broker {broker_id}", "kctl dev status lists those there are")
    return broker
