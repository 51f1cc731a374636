"""Groups of old consumers: znodes in a real ZooKeeper, logs on our broker."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from broker.metadata.recursive import create_recursive
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.brokers import BrokerIdZnode, Endpoint
from broker.metadata.znodes.consumers import ConsumerIdZnode
from broker.metadata.zookeeper import ZooKeeperSettings, ZooKeeperStore
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl, KctlResult, run_kctl
from tests.support.zookeeper import ZooKeeper

pytestmark = pytest.mark.zk

MEMBER = "audit_web1-1447000000000-5f3a1c2d"


def in_store(connect: str, work: Callable[[MetadataStore], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        store = await ZooKeeperStore.open(ZooKeeperSettings(connect), create_chroot=True)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


class Old:
    """A tree with three groups: idle (offsets), audit (a member too), and one without anything."""

    def __init__(self, connect: str, broker: RunningBroker) -> None:
        self.connect = connect
        self.servers = broker.bootstrap_servers
        in_store(connect, self._fill)

    async def _fill(self, store: MetadataStore) -> None:
        host, _, port = self.servers.rpartition(":")
        broker = BrokerIdZnode(0, (Endpoint("PLAINTEXT", host, int(port), "PLAINTEXT"),))
        await create_recursive(store, BrokerIdZnode.path(0), broker.encode())
        for group in ("audit", "idle"):
            await create_recursive(store, f"/consumers/{group}/offsets/old/0", b"1")
            await create_recursive(store, f"/consumers/{group}/offsets/old/1", b"2")
        await create_recursive(store, "/consumers/empty")
        member = ConsumerIdZnode({"old": 1}, ConsumerIdZnode.STATIC, 0).encode()
        # Ephemeral in life; here they must outlive the session that makes them.
        await create_recursive(store, f"/consumers/audit/ids/{MEMBER}", member)
        await create_recursive(store, "/consumers/audit/owners/old/1", f"{MEMBER}-0".encode())

    def run(self, *args: str) -> KctlResult:
        return run_kctl("groups", *args, "--zookeeper", self.connect)

    def offset(self, group: str, partition: int) -> bytes | None:
        path = f"/consumers/{group}/offsets/old/{partition}"
        node = in_store(self.connect, lambda store: store.get(path))
        data: bytes | None = node.data
        return data


@pytest.fixture(scope="module")
def topic(shared_broker: RunningBroker) -> RunningBroker:
    servers = ["-b", shared_broker.bootstrap_servers]
    assert run_kctl("topics", "create", "old", "-p", "2", *servers).exit_code == 0
    lines = "".join(f"{number}\n" for number in range(6))
    sent = run_kctl("produce", "old", "--partitioner", "round-robin", *servers, stdin=lines)
    assert sent.exit_code == 0
    return shared_broker


@pytest.fixture
def old(topic: RunningBroker, zookeeper_server: ZooKeeper) -> Iterator[Old]:
    yield Old(zookeeper_server.fresh_chroot(), topic)


def test_groups_are_listed_with_whether_anybody_is_in_them(old: Old) -> None:
    rows = old.run("list", "-o", "json").json
    assert [(row["group"], row["state"], row["type"]) for row in rows] == [
        ("audit", "Stable", "zookeeper"),
        ("empty", "Empty", "zookeeper"),
        ("idle", "Empty", "zookeeper"),
    ]
    assert old.run("list", "--state", "stable", "-o", "name").output == "audit\n"


def test_lag_is_computed_from_logs_of_registered_brokers(old: Old) -> None:
    rows = old.run("describe", "audit", "-o", "json").json
    assert [(row["partition"], row["current_offset"], row["lag"]) for row in rows] == [
        (0, 1, 2),
        (1, 2, 1),
    ]
    expected = "ok" if rows[1]["time_lag_ms"] <= 10_000 else "lagging"  # on a slow machine
    assert [row["verdict"] for row in rows] == ["unread", expected]
    assert rows[1]["member_id"] == MEMBER
    assert rows[1]["host"] == "web1"


def test_members_and_state_are_shown_without_a_coordinator(old: Old) -> None:
    [member] = old.run("describe", "audit", "--members", "-o", "json").json
    assert member["assignment"] == ["old-1"]
    [state] = old.run("describe", "audit", "--state", "-o", "json").json
    assert (state["state"], state["coordinator"]) == ("Stable", None)


def test_unknown_group_is_reported(old: Old) -> None:
    result = old.run("describe", "unknown")
    assert result.exit_code == 1
    assert "no such group: 'unknown'" in result.stderr


def test_offsets_of_an_idle_group_are_reset_in_zookeeper(old: Old) -> None:
    dry = old.run("reset-offsets", "idle", "--all-topics", "--to-latest")
    assert dry.exit_code == 0
    assert old.offset("idle", 0) == b"1"
    done = old.run("reset-offsets", "idle", "--all-topics", "--to-latest", "--execute")
    assert done.exit_code == 0, done.stderr
    assert (old.offset("idle", 0), old.offset("idle", 1)) == (b"3", b"3")


def test_offsets_of_partitions_never_read_are_made(old: Old) -> None:
    done = old.run("reset-offsets", "empty", "--topic", "old", "--to-earliest", "--execute")
    assert done.exit_code == 0, done.stderr
    assert old.offset("empty", 1) == b"0"


def test_group_with_members_is_neither_reset_nor_deleted(old: Old) -> None:
    reset = old.run("reset-offsets", "audit", "--all-topics", "--to-latest", "--execute")
    assert reset.exit_code == 1
    assert "the group has members: audit" in reset.stderr
    deleted = old.run("delete", "audit", "--yes")
    assert deleted.exit_code == 1
    assert "NON_EMPTY_GROUP" in deleted.stderr
    assert old.offset("audit", 0) == b"1"


def test_deleted_group_leaves_nothing(old: Old) -> None:
    assert old.run("delete", "idle", "--dry-run").exit_code == 0
    assert old.run("delete", "idle", "--yes").exit_code == 0
    assert old.run("list", "-o", "name").output == "audit\nempty\n"


def test_lag_needs_a_running_broker(old: Old) -> None:
    in_store(old.connect, lambda store: store.delete(BrokerIdZnode.path(0)))
    result = old.run("describe", "idle")
    assert result.exit_code == 1
    assert "no broker with a PLAINTEXT listener" in result.stderr
    named = old.run("describe", "idle", "-b", old.servers, "-o", "json")
    assert [row["lag"] for row in named.json] == [2, 1]


def test_tree_without_consumers_has_no_groups(kctl: Kctl, zookeeper: str) -> None:
    in_store(zookeeper, lambda store: store.exists("/consumers"))
    result = kctl("groups", "list", "--zookeeper", zookeeper, "-o", "json")
    assert result.json == []
