"""`kctl top` while a broker hangs: the others are shown, and the hung one is named."""

import asyncio
from collections.abc import Iterator

import pytest

from kctl.cli.options import Session
from kctl.top.app import TopApp
from kctl.top.pages import View
from kctl.top.sampler import Source
from tests.kctl.test_top import Screen
from tests.support.cluster import Cluster, running_cluster
from tests.support.kctl import run_kctl
from tests.support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.zk, pytest.mark.timeout(120)]

SETTINGS = {
    "zookeeper.session.timeout.ms": 60_000,  # a hung broker stays registered
    "offsets.topic.replication.factor": 1,
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    chroot = zookeeper_server.fresh_chroot()
    with running_cluster(tmp_path_factory.mktemp("top"), chroot, settings=SETTINGS) as running:
        create = ("topics", "create", "orders", "--replica-assignment", "1:2,2:3,3:1")
        assert run_kctl(*create, "-b", running.address(1)).exit_code == 0
        for partition in ("0", "1", "2"):
            args = ("produce", "orders", "-p", partition, "-b", running.address(1))
            assert run_kctl(*args, stdin="a\nb\n").exit_code == 0
        yield running


def test_log_end_offset_of_each_replica_is_shown(cluster: Cluster) -> None:
    once = ("top", "partitions", "--once", "-i", "0.5", "-o", "json")
    rows = run_kctl(*once, "-b", cluster.address(1)).json
    orders = [row for row in rows if row["topic"] == "orders"]
    assert [row["log_end_offset"] for row in orders] == [2, 2, 2]
    assert [row["replica_lags"] for row in orders] == [{"2": 0}, {"3": 0}, {"1": 0}]


def test_hung_broker_is_named_and_the_others_are_shown(cluster: Cluster) -> None:
    victim = 3 if cluster.controller_id() != 3 else 2

    async def run() -> None:
        session = Session(bootstrap_server=cluster.address(1), timeout=1.5)
        session.given = {"bootstrap_server", "timeout"}
        app = TopApp(Source(session, "test", 0.2, 30.0), View.BROKERS, [])
        async with app.run_test(size=(120, 30)) as pilot:
            screen = Screen(app, pilot)
            await screen.wait_for(lambda: screen.cursor)
            with cluster.paused(victim):
                named = f"broker {victim} ({cluster.address(victim)}) did not answer within"
                await screen.wait_for(lambda: named in screen.part("problems"))
                rows = screen.table.splitlines()[1:]
                assert ["failed" in row for row in rows] == [n == victim for n in (1, 2, 3)]
                await screen.press("3")  # keys work meanwhile
                assert "orders" in screen.table
            await screen.wait_for(lambda: screen.part("problems") == "")
            await screen.press("1")
            await screen.wait_for(lambda: "failed" not in screen.table)

    asyncio.run(run())


def test_once_names_a_hung_broker_and_exits_with_4(cluster: Cluster) -> None:
    victim = 3 if cluster.controller_id() != 3 else 2
    once = ("top", "brokers", "--once", "-i", "0.2", "-o", "json", "--timeout", "1.5")
    with cluster.paused(victim):
        result = run_kctl(*once, "-b", cluster.address(1))
    assert (result.exit_code, f"broker {victim} (" in result.stderr) == (4, True), result.stderr
    assert [row["status"] == "failed" for row in result.json] == [n == victim for n in (1, 2, 3)]
