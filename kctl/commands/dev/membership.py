"""`kctl dev add` and `kctl dev remove`."""

import re
from pathlib import Path
from typing import Annotated

import typer

from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kctl.admin.broker_queries import every_broker
from kctl.admin.connection import ask
from kctl.cli.client_properties import read_client_properties
from kctl.cli.errors import CliError
from kctl.cli.options import Session, session_of
from kctl.commands.dev.arguments import BrokerId, State, known_broker
from kctl.dev.apache_kafka import VERSION as KAFKA_VERSION
from kctl.dev.apache_kafka import download_kafka
from kctl.dev.brokers import DevBroker, dev_broker, dev_brokers, state_directory
from kctl.dev.cluster import wait_until_ready
from kctl.dev.security import dev_security
from kctl.dev.zookeeper import free_port
from kctl.views.quantities import plural

_OWN = ("broker.id", "log.dirs", "listeners", "broker.rack", "admin.listeners")
"""Settings that belong to one broker."""
_LISTENER = re.compile(r"(\w+)://([\w.]+):(\d+)")


def add(
    ctx: typer.Context,
    rack: Annotated[
        str | None, typer.Option("--rack", metavar="NAME", help="Rack of the new broker.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port; default: the one after the last broker's, or any free port."),
    ] = None,
    kafka: Annotated[
        bool,
        typer.Option(
            "--kafka",
            help=f"A broker of Apache Kafka {KAFKA_VERSION}; Maven downloads it the first time.",
        ),
    ] = False,
    state: State = None,
) -> None:
    """Start one more broker of the cluster, with the settings of the others.

    It has no partitions yet: `kctl reassign run --add-brokers` moves a fair share to it.
    """
    directory = state_directory(state)
    existing = dev_brokers(directory)
    _check_can_grow(directory, existing)
    model = existing[-1]
    settings = read_client_properties(model.properties_file)
    protocol, host, last_port = _listener(settings.get("listeners", ""))
    chosen = port if port is not None else last_port and last_port + 1
    if kafka:
        download_kafka()
        chosen = chosen or free_port()
    own = {"listeners": f"{protocol}://{host}:{chosen}"} | ({"broker.rack": rack} if rack else {})
    if not kafka:
        own["admin.listeners"] = settings.get("admin.listeners", "http://127.0.0.1:0")
    broker = dev_broker(directory, model.broker_id + 1)
    shared = {key: value for key, value in settings.items() if key not in _OWN}
    broker.write_settings(shared | own, is_kafka=kafka)
    try:
        address = broker.start()
    except CliError:
        broker.delete()
        raise
    running = [one for one in existing if one.address()]
    wait_until_ready([*(one.address() or "" for one in running), address])
    out = session_of(ctx).out
    out.note(f"broker {broker.broker_id} added; it has no partitions yet")
    out.value("bootstrap_servers", address)


def _check_can_grow(directory: Path, existing: list[DevBroker]) -> None:
    if not existing:
        raise CliError("there are no brokers", "kctl dev up --brokers 3 starts a cluster")
    if not existing[-1].is_in_cluster:
        raise CliError(
            "a single broker without ZooKeeper cannot become a larger cluster",
            "kctl dev down --delete-data, then kctl dev up --brokers 2",
        )
    if dev_security(directory).exists:
        raise CliError("a cluster with --secure cannot grow", "kctl dev up --secure --brokers N")
    if not any(broker.pid() for broker in existing):
        raise CliError("the cluster is not running", f"kctl dev up --brokers {len(existing)}")


def _listener(text: str) -> tuple[str, str, int]:
    found = _LISTENER.search(text)
    return (found[1], found[2], int(found[3])) if found else ("PLAINTEXT", "127.0.0.1", 0)


def remove(
    ctx: typer.Context,
    broker_id: BrokerId,
    force: Annotated[
        bool,
        typer.Option("--force", help="Remove the broker even if it has replicas, which are lost."),
    ] = False,
    state: State = None,
) -> None:
    """Stop a broker permanently and delete its data.

    Refused while partitions have replicas on it: `kctl reassign run --drain` moves them away.
    """
    directory = state_directory(state)
    broker = known_broker(directory, broker_id)
    others = [one for one in dev_brokers(directory) if one.broker_id != broker_id]
    if not others:
        raise CliError(f"broker {broker_id} is the only one", "kctl dev down --delete-data")
    if not force:
        _check_drained(broker_id, [one.address() for one in [*others, broker]])
    broker.stop()
    broker.delete()
    session_of(ctx).out.note(f"broker {broker_id} removed; its data was deleted")


def _check_drained(broker_id: int, addresses: list[str | None]) -> None:
    running = ",".join(one for one in addresses if one)
    if not running:
        raise CliError(
            "no broker is running: it is unknown whether partitions have replicas on it",
            "start the cluster, or use --force",
        )
    session = Session(bootstrap_server=running, given={"bootstrap_server"})

    async def count(client: Client) -> int:
        # Every broker is queried: one that has not heard of the newest topics yet would let their
        # only replica be deleted.
        request = MetadataRequest(topics=None)
        answers = await every_broker(client, lambda one: client.send_to(one, request))
        return max(_replicas_on(broker_id, answer) for answer in answers.values())

    try:
        found = ask(session, count)
    finally:
        session.close()
    if found:
        raise CliError(
            f"broker {broker_id} has replicas of {plural(found, 'partition')}",
            f"kctl reassign run --drain {broker_id} moves them; --force deletes them",
        )


def _replicas_on(broker_id: int, metadata: MetadataResponse) -> int:
    replicas = [one.replica_nodes for topic in metadata.topics for one in topic.partitions]
    return sum(broker_id in one for one in replicas)
