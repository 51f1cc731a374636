"""ACLs in a cluster: those made on one broker hold on all, at once and without a restart."""

from collections.abc import Iterator

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.security.acls import AclOperation, PatternType, ResourcePattern, ResourceType
from tests.conformance.authorization_runs import (
    CLIENT_HOST,
    OPEN,
    ClientUnderTest,
    allow_administrator,
    grant,
    revoke,
)
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.wire import WireClient
from tests.support.zookeeper import ZooKeeper

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
PREFIX = ResourcePattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Two brokers; only clients of 127.0.0.1, as brokers are, may do everything."""
    directory = tmp_path_factory.mktemp("acls")
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(directory, chroot, brokers=2, settings=OPEN) as made:
        allow_administrator(made.address(1))
        yield made


def may_describe(address: str) -> bool:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False
    )
    with ClientUnderTest(address) as client:
        (topic,) = client.ask(request, 12).topics
    return topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("pattern", [ORDERS, PREFIX], ids=["literal", "prefixed"])
def test_acl_made_on_one_broker_holds_on_all(cluster: Cluster, pattern: ResourcePattern) -> None:
    first, second = cluster.address(1), cluster.address(2)
    wait_until(lambda: not may_describe(second), "the administrator's ACLs are known")
    with WireClient(first) as admin:
        grant(admin, CLIENT_HOST, [(AclOperation.READ, pattern)])
    assert may_describe(first)
    wait_until(lambda: may_describe(second), "the ACL is known to the other broker")
    with WireClient(second) as admin:
        revoke(admin, CLIENT_HOST)
    assert not may_describe(second)
    wait_until(lambda: not may_describe(first), "its deletion is known to the first broker")


def test_znodes_are_kafkas(cluster: Cluster) -> None:
    with WireClient(cluster.address(1)) as admin:
        grant(admin, "10.1.1.1", [(AclOperation.DESCRIBE_CONFIGS, PREFIX)])
        data, _ = cluster.tree.get("/kafka-acl-extended/prefixed/Topic/ord")
        revoke(admin, "10.1.1.1")
    assert data == (
        b'{"acls":[{"principal":"User:ANONYMOUS","permissionType":"Allow","host":"10.1.1.1",'
        b'"operation":"DescribeConfigs"}],"version":1}'
    )
    assert cluster.tree.exists("/kafka-acl-extended/prefixed/Topic/ord") is None
