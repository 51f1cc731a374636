"""`kctl dev up`."""

import shutil
import time
from pathlib import Path
from typing import Annotated

import typer

from broker.net.authentication import PLAINTEXT
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.options import DEFAULT_TIMEOUT_S, Session, session_of
from kctl.commands.dev.arguments import State
from kctl.dev.apache_kafka import VERSION as KAFKA_VERSION
from kctl.dev.apache_kafka import download_kafka, kafka_home
from kctl.dev.brokers import (
    DevBroker,
    dev_broker,
    dev_brokers,
    start_all,
    state_directory,
    stop_all,
)
from kctl.dev.security import CONTEXT, DevSecurity, dev_security
from kctl.dev.zookeeper import dev_zookeeper, free_port
from kctl.java import find_java


def up(
    ctx: typer.Context,
    port: Annotated[
        int,
        typer.Option(
            help="Port of the first broker, the others use the next ports; 0 for any free port."
        ),
    ] = 9092,
    brokers: Annotated[
        int,
        typer.Option(
            min=0,
            max=99,
            help="Number of brokers; more than one need a ZooKeeper. 0 with --kafka only.",
        ),
    ] = 1,
    kafka: Annotated[
        int,
        typer.Option(
            "--kafka",
            metavar="N",
            min=0,
            max=99,
            help=f"Also start N brokers of Apache Kafka {KAFKA_VERSION} in the same cluster; Maven "
            "downloads it the first time. Needs Java 17 or newer.",
        ),
    ] = 0,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT/CHROOT",
            help="Use this ZooKeeper instead of starting one. With --set: "
            "zookeeper.auth.digest=USER:PASSWORD, zookeeper.ssl.client.enable and the PEM files "
            "zookeeper.ssl.truststore.location and zookeeper.ssl.keystore.location.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Broker config; can be repeated."),
    ] = None,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="TLS, SCRAM logins and ACLs; certificates, an admin user and the context "
            f"{CONTEXT} are created.",
        ),
    ] = False,
    racks: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…", help="Racks of the brokers, in turn, e.g. a,b,c (broker.rack)."
        ),
    ] = None,
    zookeeper_port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=65535,
            help="Port of the ZooKeeper that is started (default: any free port, then the same).",
        ),
    ] = None,
    seed_data: Annotated[
        bool,
        typer.Option(
            "--seed-data",
            help="Create example data: the topics orders and clicks, and the group billing, which "
            "has read a part of the orders.",
        ),
    ] = False,
    state: State = None,
) -> None:
    """Start brokers; their data is kept between starts.

    A single broker stores its metadata itself. Several brokers form a cluster with a ZooKeeper,
    which is also started (from PySpark's jars, with Java 17 or newer) unless one is given.
    Without --secure, `kctl dev status` shows the admin ports with metrics and health.

    Brokers of Apache Kafka (--kafka) get the ids and ports after ours. Both use the same files: a
    broker can be started as the other kind on the data it has.
    """
    directory = state_directory(state)
    count = brokers + kafka
    _check_count(brokers, kafka, secure=secure)
    wanted = [dev_broker(directory, broker_id) for broker_id in range(1, count + 1)]
    is_cluster = count > 1 or kafka > 0 or zookeeper is not None
    _check_none_runs(dev_brokers(directory))
    _check_kind(dev_brokers(directory), is_cluster)
    names = _parse_racks(racks)
    if zookeeper_port and (zookeeper or not is_cluster):
        raise usage_error(
            "--zookeeper-port has no effect: no ZooKeeper is started",
            "use --brokers 2 or more",
        )
    if secure and seed_data:
        raise usage_error("--seed-data cannot be combined with --secure", "omit one of them")
    security = dev_security(directory)
    _check_security(security, dev_brokers(directory), secure=secure)
    own = {"group.initial.rebalance.delay.ms": "0"}
    if not secure:  # the admin port tells names of topics to every user of this machine
        own["admin.listeners"] = "http://127.0.0.1:0"
    own |= _parse_settings(settings or [])
    _download(session_of(ctx), kafka)
    started = time.monotonic()
    if is_cluster:
        own = _cluster(directory, zookeeper, count, zookeeper_port) | own
    protocol = "PLAINTEXT"
    if secure:
        protocol = "SASL_SSL"
        own = _secure(security, wanted, own) | own
    for number, broker in enumerate(wanted):
        rack = {"broker.rack": names[number % len(names)]} if names else {}
        is_kafka = number >= brokers
        _write_settings(broker, protocol, port and port + number, rack | own, is_kafka=is_kafka)
    addresses = _start(wanted, security if secure else None)
    out = session_of(ctx).out
    if secure:
        security.write_context(",".join(addresses))
        out.note(f"context {CONTEXT} saved: kctl --context {CONTEXT} acls list")
    what = f"{count} brokers" if count > 1 else "broker"
    if kafka:
        what += f" ({kafka} of Apache Kafka {KAFKA_VERSION})"
    out.note(f"{what} started in {1000 * (time.monotonic() - started):.0f} ms; data in {directory}")
    if seed_data:
        from kctl.dev.seed_data import seed

        seed(",".join(addresses))
        out.note("example data created: topics orders and clicks, group billing")
    out.value("bootstrap_servers", ",".join(addresses))


def _check_count(brokers: int, kafka: int, *, secure: bool) -> None:
    if not brokers + kafka:
        raise usage_error("--brokers 0 starts nothing", "use --kafka 1, or more brokers")
    if kafka and secure:
        raise usage_error("--kafka cannot be combined with --secure", "omit one of them")


def _download(session: Session, kafka: int) -> None:
    """Get Apache Kafka, if it is needed, before anything is started or written."""
    if not kafka:
        return
    find_java()
    if not (kafka_home() / "libs").is_dir() and shutil.which("mvn"):
        session.out.note(f"downloading Apache Kafka {KAFKA_VERSION} with Maven …")
    download_kafka()


def _write_settings(
    broker: DevBroker, protocol: str, port: int, settings: dict[str, str], *, is_kafka: bool
) -> None:
    """Settings of one broker; ours finds a free port itself, Apache Kafka is given one."""
    port = port or (free_port() if is_kafka else 0)
    listens = {"listeners": f"{protocol}://127.0.0.1:{port}"}
    if is_kafka:
        settings = {key: value for key, value in settings.items() if key != "admin.listeners"}
    broker.write_settings(listens | settings, is_kafka=is_kafka)


def _check_none_runs(brokers: list[DevBroker]) -> None:
    for broker in brokers:
        if broker.pid() is not None:
            raise CliError(
                f"broker {broker.broker_id} is already running on {broker.address()}",
                "kctl dev down stops it",
            )


def _check_kind(before: list[DevBroker], is_cluster: bool) -> None:
    """Data of a cluster cannot be used by a single broker, nor the other way round."""
    was_cluster = [broker.is_in_cluster for broker in before]
    if before and any(was_cluster) and not is_cluster:
        raise CliError(
            f"the data belongs to a cluster of {len(before)} brokers",
            f"kctl dev up --brokers {len(before)} starts it; "
            "kctl dev down --delete-data deletes it",
        )
    if before and not any(was_cluster) and is_cluster:
        raise CliError(
            "the data belongs to a single broker without ZooKeeper",
            "kctl dev up starts it; kctl dev down --delete-data deletes it; or use another --dir",
        )


def _parse_racks(text: str | None) -> list[str]:
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise usage_error(f"--racks {text}: a rack has no name", "e.g. --racks a,b,c")
    return names


def _cluster(
    state: Path, zookeeper: str | None, brokers: int, zookeeper_port: int | None
) -> dict[str, str]:
    """The settings of a cluster, after its ZooKeeper was started."""
    from kctl.dev.cluster import cluster_settings

    if zookeeper is None:
        server = dev_zookeeper(state)
        server.ensure_running(zookeeper_port)
        zookeeper = server.address
    return cluster_settings(zookeeper, brokers)


def _check_security(security: DevSecurity, before: list[DevBroker], *, secure: bool) -> None:
    """A secure cluster is not started without its security, nor the other way round."""
    if security.exists and not secure:
        raise CliError(
            "the data belongs to a cluster with security",
            "kctl dev up --secure starts it; kctl dev down --delete-data deletes it",
        )
    if secure and before and not security.exists:
        raise CliError(
            "the data belongs to a cluster without security",
            "kctl dev up starts it; kctl dev down --delete-data deletes it; or use another --dir",
        )


def _secure(
    security: DevSecurity, brokers: list[DevBroker], settings: dict[str, str]
) -> dict[str, str]:
    """The security settings of all brokers, after certificates and users were created."""
    from kctl.admin.metadata_place import Place, zookeeper_place

    security.generate()
    if "zookeeper.connect" in settings:
        place = zookeeper_place(settings["zookeeper.connect"], DEFAULT_TIMEOUT_S)
    else:
        (broker,) = brokers
        broker.data.mkdir(parents=True, exist_ok=True, mode=0o700)  # it holds the credentials
        place = Place(str(broker.data), DEFAULT_TIMEOUT_S)
    security.create_users(place)
    return security.broker_settings()


def _start(brokers: list[DevBroker], security: DevSecurity | None) -> list[str]:
    """Start all brokers or none; their addresses, once they form a cluster."""
    try:
        addresses = start_all(brokers)
        if len(brokers) > 1 or security:
            from kctl.dev.cluster import wait_until_ready

            wait_until_ready(addresses, security.for_client() if security else PLAINTEXT)
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
