"""A broker's registration in its cluster: epoch, ids, and what makes it fail."""

import subprocess
import sys
from pathlib import Path

from tests.cluster.asking import make_topic
from tests.conformance.admin_topics import look_at
from tests.support.cluster import Cluster, wait_until
from tests.support.processes import free_port
from tests.support.wire import WireClient
from tests.support.zookeeper import ZooKeeper


def refused(cluster: Cluster, broker_id: int, **settings: object) -> str:
    """The last line of a broker that does not start; the status must be 1."""
    server = cluster.launch(broker_id, {key.replace("_", "."): v for key, v in settings.items()})
    assert server.process.wait(30) == 1
    del cluster.servers[broker_id]
    return server.log_file.read_text().splitlines()[-1]


def everything_below(cluster: Cluster, path: str = "/") -> dict[str, tuple[bytes, int]]:
    """Every node with its data and version."""
    found: dict[str, tuple[bytes, int]] = {}
    for name in cluster.tree.get_children(path):
        child = f"{path.rstrip('/')}/{name}"
        data, stat = cluster.tree.get(child)
        found |= {child: (data, stat.version)} | everything_below(cluster, child)
    return found


def test_a_broker_registers_as_kafka_does(empty_cluster: Cluster) -> None:
    empty_cluster.start(1, settings={"broker.rack": "r1"})
    node = empty_cluster.znode("/brokers/ids/1")
    port = int(empty_cluster.address(1).rpartition(":")[2])
    assert {key: node[key] for key in node if key != "timestamp"} == {
        "features": {},
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://127.0.0.1:{port}"],
        "rack": "r1",
        "jmx_port": -1,
        "port": port,
        "host": "127.0.0.1",
        "version": 5,
    }
    stat = empty_cluster.tree.exists("/brokers/ids/1")
    assert stat is not None
    assert f"epoch={stat.czxid}" in empty_cluster.output(1)
    cluster_id = empty_cluster.znode("/cluster/id")["id"]
    meta = (empty_cluster.log_dir(1) / "meta.properties").read_text()
    assert f"cluster.id={cluster_id}" in meta
    assert "broker.id=1" in meta


def test_a_broker_without_an_id_gets_one_above_the_reserved_and_keeps_it(
    empty_cluster: Cluster,
) -> None:
    generated = {"broker.id": -1, "log.dirs": empty_cluster.directory / "generated"}
    empty_cluster.start(7, settings=generated)
    assert empty_cluster.live_brokers() == [1001]
    empty_cluster.restart(7, generated)
    assert empty_cluster.live_brokers() == [1001]


def test_a_second_broker_with_the_same_id_is_rejected_at_once(empty_cluster: Cluster) -> None:
    empty_cluster.start(1)
    before = everything_below(empty_cluster)
    other = empty_cluster.directory / "other"
    first = empty_cluster.servers.pop(1)
    with first:
        line = refused(
            empty_cluster,
            1,
            listeners=f"PLAINTEXT://127.0.0.1:{free_port()}",
            log_dirs=other,
        )
        assert line == (
            "kctl-broker: broker.id=1 is in use by another broker of this cluster: stop that "
            "broker, or set another broker.id"
        )
        assert everything_below(empty_cluster) == before
        assert first.process.poll() is None


def test_a_killed_broker_registers_as_soon_as_its_old_session_expires(
    empty_cluster: Cluster,
) -> None:
    empty_cluster.start(1)
    before = empty_cluster.tree.exists("/brokers/ids/1")
    empty_cluster.kill(1)
    empty_cluster.start(1)  # the node of the old session still exists
    assert "waiting until the previous session expires" in empty_cluster.output(1)
    after = empty_cluster.tree.exists("/brokers/ids/1")
    assert before is not None and after is not None
    assert after.czxid > before.czxid


def test_a_broker_that_waits_for_its_former_session_can_be_stopped(empty_cluster: Cluster) -> None:
    long = {"zookeeper.session.timeout.ms": 9000}
    empty_cluster.start(1, settings=long)
    empty_cluster.stop(1)
    clean = empty_cluster.log_dir(1) / ".kafka_cleanshutdown"
    assert clean.exists()
    empty_cluster.start(1, settings=long)
    empty_cluster.kill(1)
    server = empty_cluster.launch(1, long)
    server.wait_for_line("waiting until the previous session expires")
    assert empty_cluster.stop(1) == 0
    assert clean.exists(), "what it had opened is closed again"


def test_brokers_talk_over_one_listener_and_are_advertised_on_the_other(
    empty_cluster: Cluster,
) -> None:
    for broker_id in (1, 2):
        inner, outer = free_port(), free_port()
        empty_cluster.start(
            broker_id,
            settings={
                "listeners": f"INNER://127.0.0.1:{inner},OUTER://127.0.0.1:{outer}",
                "advertised.listeners": f"INNER://127.0.0.1:{inner},OUTER://localhost:{outer}",
                "listener.security.protocol.map": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
                "inter.broker.listener.name": "INNER",
            },
        )
        endpoints = [f"INNER://127.0.0.1:{inner}", f"OUTER://localhost:{outer}"]
        assert empty_cluster.znode(f"/brokers/ids/{broker_id}")["endpoints"] == endpoints
        empty_cluster.ports[broker_id] = outer
    make_topic(empty_cluster, "inside", {0: [1, 2], 1: [2, 1]})
    with WireClient(empty_cluster.address(2)) as wire:
        brokers = wire.ask(look_at(), 12).brokers
    assert {broker.host for broker in brokers} == {"localhost"}


def test_a_log_directory_of_another_cluster_is_rejected_and_nothing_changes(
    empty_cluster: Cluster, zookeeper_server: ZooKeeper
) -> None:
    empty_cluster.start(1)
    empty_cluster.stop(1)
    foreign = zookeeper_server.fresh_chroot()
    line = refused(empty_cluster, 1, zookeeper_connect=foreign)
    assert line.startswith("kctl-broker: ")
    assert line.endswith("the metadata has none: the directory belongs to another cluster")
    path = foreign.removeprefix(zookeeper_server.address)
    top = zookeeper_server.children(path)
    assert top == []
    meta = empty_cluster.log_dir(1) / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=", "cluster.id=x"))
    before = everything_below(empty_cluster)
    line = refused(empty_cluster, 1)
    cluster_id = empty_cluster.znode("/cluster/id")["id"]
    assert f"cluster.id=x{cluster_id}, but the metadata has {cluster_id}" in line
    assert everything_below(empty_cluster) == before


def test_a_missing_chroot_is_created_for_a_new_broker_only(
    empty_cluster: Cluster, zookeeper_server: ZooKeeper
) -> None:
    new = f"{zookeeper_server.fresh_chroot()}/not/there"
    empty_cluster.start(1, settings={"zookeeper.connect": new})
    assert "brokers" in zookeeper_server.children(new.removeprefix(zookeeper_server.address))
    empty_cluster.stop(1)
    missing = f"{zookeeper_server.fresh_chroot()}/missing"
    line = refused(empty_cluster, 1, zookeeper_connect=missing)
    path = missing.removeprefix(zookeeper_server.address)
    assert line == f"kctl-broker: {path}: no such node (the chroot does not exist)"
    assert zookeeper_server.children(path.removesuffix("/missing")) == []


def test_an_unreachable_zookeeper_is_one_line_and_leaves_no_files(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "zookeeper.connect": f"127.0.0.1:{port}",
        "zookeeper.connection.timeout.ms": 500,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": tmp_path / "data",
    }
    command = [sys.executable, "-m", "broker"]
    command += [f"--override={key}={value}" for key, value in settings.items()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        f"kctl-broker: 127.0.0.1:{port}: the connection to the metadata store was lost "
        "(no ZooKeeper answered within 500 ms)"
    )
    assert not (tmp_path / "data").exists()


def test_brokers_find_each_other_and_one_is_controller(shared_cluster: Cluster) -> None:
    assert shared_cluster.live_brokers() == [1, 2, 3]
    controller = wait_until(shared_cluster.controller_id, "a controller")
    assert controller in (1, 2, 3)
    assert int(shared_cluster.tree.get("/controller_epoch")[0]) >= 1
