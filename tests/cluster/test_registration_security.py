"""Brokers and a ZooKeeper that authenticates them: digest, ACLs, TLS."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.exceptions import NoAuthError

from tests.cluster.asking import make_topic
from tests.support.certificates import Authority
from tests.support.cluster import Cluster, running_cluster
from tests.support.processes import free_port
from tests.support.zookeeper import ZooKeeper, running_zookeeper

OWN = {"zookeeper.set.acl": "true", "zookeeper.auth.digest": "kafka:secret"}


def test_nodes_are_readable_by_all_and_changed_by_brokers_only(empty_cluster: Cluster) -> None:
    empty_cluster.start(1, 2, settings=OWN)
    make_topic(empty_cluster, "guarded", {0: [1, 2]}, retention_ms="1000")
    assert empty_cluster.leader("guarded") == 1
    for path in ("/brokers/topics/guarded", "/controller", "/config/topics/guarded"):
        with pytest.raises(NoAuthError):
            empty_cluster.tree.set(path, b"{}")
    with pytest.raises(NoAuthError):
        empty_cluster.tree.get("/config/brokers")
    empty_cluster.tree.set("/consumers", b"")
    stranger = empty_cluster.launch(3)
    assert stranger.process.wait(30) == 1
    del empty_cluster.servers[3]
    last = stranger.log_file.read_text().splitlines()[-1]
    assert last.startswith("kctl-broker: /")
    assert "ZooKeeper does not allow it: zookeeper.auth.digest has the wrong credentials" in last


def test_acls_without_credentials_are_rejected_at_startup(
    empty_cluster: Cluster,
) -> None:
    server = empty_cluster.launch(1, {"zookeeper.set.acl": "true"})
    assert server.process.wait(30) == 1
    del empty_cluster.servers[1]
    assert server.log_file.read_text().splitlines()[-1] == (
        "kctl-broker: zookeeper.set.acl=true needs credentials: set zookeeper.auth.digest"
    )
    assert empty_cluster.tree.get_children("/") == []


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ZooKeeper, int, Path]]:
    """A ZooKeeper with a TLS port beside the plain one, and the files that clients need."""
    directory = tmp_path_factory.mktemp("secured")
    authority, port = Authority(), free_port()
    (directory / "trusted.pem").write_text(authority.certificate)
    for name in ("127.0.0.1", "broker"):
        (directory / f"{name}.pem").write_text(authority.certificate_for(name).pem)
    settings = {
        "secureClientPort": port,
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": directory / "127.0.0.1.pem",
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": directory / "trusted.pem",
        "ssl.trustStore.type": "PEM",
    }
    with running_zookeeper(directory, settings) as server:
        yield server, port, directory


def test_a_broker_reaches_zookeeper_over_tls_with_a_certificate_of_its_own(
    secured: tuple[ZooKeeper, int, Path], tmp_path: Path
) -> None:
    server, port, directory = secured
    chroot = server.fresh_chroot()
    path = chroot.removeprefix(server.address)
    tls = {
        "zookeeper.connect": f"127.0.0.1:{port}{path}",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": directory / "trusted.pem",
        "zookeeper.ssl.truststore.type": "PEM",
        "zookeeper.ssl.keystore.location": directory / "broker.pem",
        "zookeeper.ssl.keystore.type": "PEM",
    }
    with running_cluster(tmp_path, chroot, 2, tls) as cluster:
        make_topic(cluster, "over-tls", {0: [2, 1]})
        assert cluster.live_brokers() == [1, 2]


def test_a_key_store_that_is_not_pem_is_named(empty_cluster: Cluster) -> None:
    settings = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": "trusted.jks",
        "zookeeper.ssl.truststore.type": "JKS",
    }
    server = empty_cluster.launch(1, settings)
    assert server.process.wait(30) == 1
    del empty_cluster.servers[1]
    assert server.log_file.read_text().splitlines()[-1] == (
        "kctl-broker: zookeeper.ssl.truststore.type=JKS: only PEM is supported; "
        "convert PKCS12 with openssl pkcs12"
    )
