"""Queries to several brokers while one of them is hung, or dead but still registered."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.model import TopicPartition
from kctl.streaming import waiting
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.kctl import KctlResult, run_kctl
from tests.support.open_transactions import write_open_transaction
from tests.support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.zk, pytest.mark.timeout(120)]

SETTINGS = {
    # The broker stays registered for as long as it hangs.
    "zookeeper.session.timeout.ms": 60_000,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 6,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.num.partitions": 3,
    "transaction.partition.verification.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
}
TIMEOUT_S = 1.5


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    chroot = zookeeper_server.fresh_chroot()
    directory = tmp_path_factory.mktemp("cluster")
    with running_cluster(directory, chroot, settings=SETTINGS) as running:
        servers = running.address(1)
        create = ("topics", "create", "orders", "--replica-assignment", "1,2,3")
        assert run_kctl(*create, "-b", servers).exit_code == 0
        replicated = ("topics", "create", "replicated", "--replica-assignment", "1:2,2:3,3:1")
        assert run_kctl(*replicated, "-b", servers).exit_code == 0
        run_kctl("produce", "replicated", "-b", servers, stdin="a\nb\nc\n")
        for number in range(6):
            args = ("consume", "orders", "--group", f"group-{number}", "--exit", "-b", servers)
            run_kctl("produce", "orders", "-b", servers, stdin="a\nb\nc\nd\ne\nf\n")
            assert run_kctl(*args).exit_code == 0
        yield running


@pytest.fixture(scope="module")
def all_groups(cluster: Cluster) -> set[str]:
    return {row["group"] for row in on(cluster, "groups", "list", "-o", "json").json}


@pytest.fixture(scope="module")
def stuck(cluster: Cluster) -> None:
    """A topic with a hanging transaction on each broker; every broker is a coordinator."""
    servers = cluster.bootstrap_servers
    create = ("topics", "create", "stuck", "--replica-assignment", "1,2,3")
    assert run_kctl(*create, "-b", servers).exit_code == 0
    words = ("produce", "stuck", "--transactional-id", "healthy", "-b", servers)
    assert run_kctl(*words, stdin="a\n").exit_code == 0
    for number in range(3):
        asyncio.run(write_open_transaction(servers, TopicPartition("stuck", number)))
    found = run_kctl("transactions", "hanging", "-o", "json", "-b", servers)
    assert [row["partition"] for row in found.json] == [0, 1, 2]


def on(cluster: Cluster, *args: str, bootstrap: int = 1, stdin: str | None = None) -> KctlResult:
    words = ("-b", cluster.address(bootstrap), "--timeout", str(TIMEOUT_S))
    return run_kctl(*args, *words, stdin=stdin)


@pytest.fixture(scope="module")
def victim(cluster: Cluster) -> int:
    """A broker that is neither the controller nor the bootstrap server."""
    return 3 if cluster.controller_id() != 3 else 2


READING = [
    ("topics", "describe", "orders", "-o", "wide"),
    ("groups", "list"),
    ("groups", "describe", "--all", "--totals"),
    ("offsets", "orders"),
    ("api-versions",),
    ("throttle", "list"),
    ("configs", "describe", "--entity-type", "brokers"),
    ("transactions", "list"),
    ("transactions", "producers", "orders"),
    ("log-dirs", "--by", "broker"),
    ("groups", "list", "--lag"),
    ("groups", "describe", "--all", "--members"),
    ("groups", "watch", "--all", "-n", "1"),
    ("consume", "orders", "--exit"),
    ("consume", "orders", "--last", "3"),
    ("replicas", "verify", "orders"),
    ("replicas", "verify", "replicated"),
    ("offsets", "orders", "--time", "earliest"),
    ("topics", "describe", "orders", "-o", "json"),
    ("dump-log", "segments", "orders"),
    ("transactions", "hanging"),
]
NOT_NEEDING_THE_BROKER = [
    ("brokers", "list"),
    ("topics", "list"),
    ("topics", "configs", "orders"),
    ("configs", "describe", "topic:orders"),
    ("configs", "describe", "brokers"),
    ("cluster", "id"),
    ("cluster", "describe"),
    ("reassign", "list"),
    ("elect-leaders", "orders", "--dry-run"),
    ("topics", "create", "tried", "--replica-assignment", "1", "--dry-run"),
    ("topics", "delete", "orders", "--dry-run"),
]


class TestHungBroker:
    """A broker is stopped with SIGSTOP: connections open, and nothing is answered."""

    @pytest.fixture(autouse=True)
    def _hung(
        self, cluster: Cluster, victim: int, all_groups: set[str], stuck: None
    ) -> Iterator[None]:
        # ZooKeeper may have expired its session during the last pause.
        wait_until(lambda: victim in cluster.live_brokers(), "the broker is registered")
        with cluster.paused(victim):
            yield

    @pytest.mark.parametrize("args", READING, ids=" ".join)
    def test_broker_is_named_and_the_status_is_4(
        self, cluster: Cluster, victim: int, args: tuple[str, ...]
    ) -> None:
        started_s = time.monotonic()
        result = on(cluster, *args)
        assert result.exit_code == 4, result.stderr
        address = cluster.address(victim)
        assert (
            f"broker {victim} ({address}) did not answer within {TIMEOUT_S:g} s\n" in result.stderr
        )
        assert "error:" not in result.stderr
        # Brokers are queried in parallel, and a hung one is waited for once or twice per query.
        assert time.monotonic() - started_s < 5 * TIMEOUT_S

    def test_rows_of_the_other_brokers_are_shown(
        self, cluster: Cluster, victim: int, all_groups: set[str]
    ) -> None:
        offsets = on(cluster, "offsets", "orders", "-o", "json").json
        known = {row["partition"]: row["offset"] for row in offsets}
        assert [p for p, offset in known.items() if offset is None] == [victim - 1]
        brokers = {row["broker"] for row in on(cluster, "log-dirs", "-o", "json").json}
        assert brokers == {1, 2, 3} - {victim}
        served = on(cluster, "api-versions", "-o", "json").json
        assert {broker for row in served for broker in row["brokers"]} == {1, 2, 3} - {victim}
        groups = {row["group"] for row in on(cluster, "groups", "list", "-o", "json").json}
        assert groups
        assert groups < all_groups
        partitions = on(cluster, "topics", "describe", "orders", "-o", "json").json[0]["partitions"]
        unknown = [row["partition"] for row in partitions if row["log_end_offset"] is None]
        assert unknown == [victim - 1]
        segments = on(cluster, "dump-log", "segments", "orders", "-o", "json").json
        assert {row["partition"] for row in segments} == {0, 1, 2} - {victim - 1}

    def test_replicas_on_the_other_brokers_are_compared(
        self, cluster: Cluster, victim: int
    ) -> None:
        rows = on(cluster, "replicas", "verify", "replicated", "-o", "json").json
        statuses = {row["partition"]: row["status"] for row in rows}
        # Leaders give the offsets. The hung broker leads what it is the preferred replica of,
        # unless ZooKeeper expired its session during an earlier test.
        described = on(cluster, "topics", "describe", "replicated", "-o", "json").json[0]
        partitions = {row["partition"]: row for row in described["partitions"]}
        led = {p for p, row in partitions.items() if row["leader"] != victim}
        assert len(led) >= 2
        assert statuses == {
            p: "incomplete" if victim in partitions[p]["replicas"] else "same" for p in led
        }

    def test_configs_of_the_hung_broker_are_missing(self, cluster: Cluster, victim: int) -> None:
        configs = on(cluster, "configs", "describe", f"broker:{victim}", "-o", "json")
        assert (configs.exit_code, configs.json) == (4, []), configs.stderr

    @pytest.mark.parametrize("args", NOT_NEEDING_THE_BROKER, ids=" ".join)
    def test_query_that_does_not_need_the_broker_succeeds(
        self, cluster: Cluster, args: tuple[str, ...]
    ) -> None:
        result = on(cluster, *args)
        assert result.exit_code == 0, result.stderr

    def test_records_of_the_other_brokers_are_consumed(self, cluster: Cluster, victim: int) -> None:
        found = on(cluster, "consume", "orders", "--exit", "-o", "jsonl").output.splitlines()
        partitions = {json.loads(line)["partition"] for line in found}
        assert partitions == {0, 1, 2} - {victim - 1}

    def test_drain_of_the_hung_broker_is_planned(self, cluster: Cluster, victim: int) -> None:
        result = on(cluster, "reassign", "plan", "orders", "--drain", str(victim), "-o", "json")
        assert [row["now"] for row in result.json] == [[victim]], result.stderr

    def test_change_on_the_hung_broker_names_it(self, cluster: Cluster, victim: int) -> None:
        for args in (
            ("delete-records", f"orders:{victim - 1}", "--offset", "0", "--yes"),
            ("configs", "set", f"broker:{victim}", "log.cleaner.threads=1", "--yes"),
        ):
            started_s = time.monotonic()
            result = on(cluster, *args)
            assert result.exit_code in (1, 4), result.stderr
            assert f"broker {victim} ({cluster.address(victim)}) did not answer" in result.stderr
            assert "no answer from" not in result.stderr
            assert time.monotonic() - started_s < 5 * TIMEOUT_S

    def test_throttles_of_the_other_brokers_are_set_and_cleared(
        self, cluster: Cluster, victim: int
    ) -> None:
        address = cluster.address(victim)
        for args in (("set", "10MB", "--brokers", "1,2,3"), ("clear",)):
            result = on(cluster, "throttle", *args, "--yes", "-o", "json")
            assert result.exit_code == 4, result.stderr
            changed = {row["entity"] for row in result.json}
            assert changed == {f"broker {b}" for b in (1, 2, 3) if b != victim}
            assert f"broker {victim} ({address}) did not answer" in result.stderr

    def test_records_without_acknowledgement_may_have_been_written(
        self, cluster: Cluster, victim: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(waiting, "NOTICE_S", 0.2)
        partition = ("-p", str(victim - 1))
        plain = on(cluster, "produce", "orders", *partition, stdin="a\n")
        assert plain.exit_code == 4, plain.stderr
        assert f"broker {victim} ({cluster.address(victim)}) did not answer" in plain.stderr
        assert "1 record not acknowledged within 1.5 s: it may have been written" in plain.stderr
        everywhere = ("-X", "partitioner=random", "-X", "sticky.partitioning.linger.ms=0")
        measured = on(cluster, "perf", "produce", "orders", "-n", "50", *everywhere)
        assert measured.exit_code == 4, measured.stderr
        assert "may have been written" in measured.stderr

    def test_transaction_that_cannot_be_aborted_is_no_internal_error(
        self, cluster: Cluster, victim: int
    ) -> None:
        words = ("produce", "orders", "-p", str(victim - 1), "--transactional-id", "till")
        result = on(cluster, *words, stdin="a\n")
        assert result.exit_code in (1, 4), result.stderr
        assert "transaction" in result.stderr
        assert "internal error" not in result.stderr

    def test_search_for_hanging_transactions_does_not_call_an_incomplete_answer_clean(
        self, cluster: Cluster, victim: int
    ) -> None:
        result = on(cluster, "transactions", "hanging", "orders")
        assert result.exit_code == 4
        assert f"broker {victim} ({cluster.address(victim)}) did not answer" in result.stderr
        assert "no hanging transactions found where it was possible to search\n" in result.stderr

    def test_open_transaction_that_the_hung_broker_may_know_is_not_called_hanging(
        self, cluster: Cluster, victim: int
    ) -> None:
        result = on(cluster, "transactions", "hanging", "stuck", "-o", "json")
        assert (result.exit_code, result.json) == (4, [])
        places = ", ".join(f"stuck-{number}" for number in range(3) if number != victim - 1)
        assert f"a coordinator did not answer: long open in {places}\n" in result.stderr
        assert "no hanging transactions" not in result.stderr


def test_hung_controller_is_named(cluster: Cluster) -> None:
    controller = cluster.controller_id() or 0
    other = controller % 3 + 1
    named = f"broker {controller} ({cluster.address(controller)}) did not answer within"
    with cluster.paused(controller):
        described = on(cluster, "topics", "describe", "orders", "-o", "json", bootstrap=other)
        listed = on(cluster, "reassign", "list", bootstrap=other)
        throttles = on(cluster, "throttle", "list", "-o", "json", bootstrap=other)
    assert (throttles.exit_code, throttles.json) == (4, []), throttles.stderr
    assert (described.exit_code, named in described.stderr) == (4, True), described.stderr
    assert len(described.json[0]["partitions"]) == 3
    assert (listed.exit_code, named in listed.stderr) == (4, True), listed.stderr


def test_change_that_timed_out_says_that_it_may_have_been_made(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = cluster.controller_id() or 0
    other = controller % 3 + 1
    create = ("topics", "create", "late", "--replica-assignment", str(other))
    monkeypatch.setenv("PASSWORD", "secret")
    user = ("users", "set", "alice", "--password-env", "PASSWORD", "--yes")
    with cluster.paused(controller):
        result = on(cluster, *create, bootstrap=other)
        for args in (user, ("topics", "delete", "replicated", "--yes")):
            changed = on(cluster, *args, bootstrap=other)
            assert changed.exit_code == 4, changed.stderr
            assert f"broker {controller} ({cluster.address(controller)})" in changed.stderr
            assert "the change may have been made\n" in changed.stderr
        dry_run = on(cluster, *create, "--dry-run", bootstrap=other)
    assert result.exit_code == 4, result.stderr
    assert f"broker {controller} ({cluster.address(controller)}) did not answer" in result.stderr
    assert "the change may have been made\n" in result.stderr
    assert "kctl topics describe late shows whether it was" in result.stderr
    assert (dry_run.exit_code, "may have been" in dry_run.stderr) == (4, False)


def test_controller_that_waits_for_a_hung_broker_is_not_waited_for(cluster: Cluster) -> None:
    wait_until(lambda: cluster.live_brokers() == [1, 2, 3], "all brokers are registered")
    controller = wait_until(cluster.controller_id, "there is a controller")
    hung = controller % 3 + 1
    create = ("topics", "create", "doomed", "--replica-assignment", f"{controller}:{hung}")
    assert run_kctl(*create, "-b", cluster.address(controller)).exit_code == 0
    with cluster.paused(hung):
        result = on(cluster, "topics", "delete", "doomed", "--yes", bootstrap=controller)
    assert result.exit_code == 4, result.stderr
    assert f"error: broker {hung} ({cluster.address(hung)}) did not answer" in result.stderr
    assert "the change may have been made\n" in result.stderr


def test_hung_bootstrap_server_does_not_delay_the_others(cluster: Cluster, victim: int) -> None:
    live = next(b for b in (1, 2, 3) if b != victim)
    servers = f"{cluster.address(victim)},{cluster.address(live)}"
    with cluster.paused(victim):
        for _ in range(4):  # bootstrap servers are tried in random order
            result = run_kctl("brokers", "list", "-b", servers, "--timeout", "2")
            assert result.exit_code == 0, result.stderr


def test_without_a_given_timeout_a_hung_broker_costs_seconds(cluster: Cluster, victim: int) -> None:
    with cluster.paused(victim):
        started_s = time.monotonic()
        result = run_kctl("log-dirs", "-b", cluster.address(1))
        assert result.exit_code == 4
        assert "did not answer within 5 s" in result.stderr
        assert time.monotonic() - started_s < 15


def test_without_a_given_timeout_a_hung_controller_costs_seconds(cluster: Cluster) -> None:
    controller = cluster.controller_id() or 0
    other = controller % 3 + 1
    with cluster.paused(controller):
        started_s = time.monotonic()
        result = run_kctl("topics", "create", "later", "-p", "1", "-b", cluster.address(other))
        assert result.exit_code == 4
        assert f"broker {controller} ({cluster.address(controller)})" in result.stderr
        assert "the change may have been made" in result.stderr
        assert time.monotonic() - started_s < 20


def test_replica_moved_away_while_its_broker_was_down_is_a_stray(
    cluster: Cluster, victim: int, tmp_path: Path
) -> None:
    wait_until(lambda: victim in cluster.live_brokers(), "the broker is registered")
    servers = ("-b", cluster.address(1))
    create = ("topics", "create", "moved", "--replica-assignment", f"1:{victim}")
    assert run_kctl(*create, *servers).exit_code == 0
    cluster.stop(victim)
    plan = tmp_path / "plan.json"
    plan.write_text('{"partitions": [{"topic": "moved", "partition": 0, "replicas": [1]}]}')
    assert run_kctl("reassign", "run", "--file", str(plan), "--yes", *servers).exit_code == 0
    cluster.start(victim)
    result = run_kctl("log-dirs", "moved", "-o", "json", *servers)
    assert {row["broker"]: row["stray"] for row in result.json} == {1: False, victim: True}
    assert "1 stray replica" in result.stderr


def test_partition_without_a_leader_does_not_hide_hanging_transactions(
    cluster: Cluster, victim: int, stuck: None
) -> None:
    wait_until(lambda: victim in cluster.live_brokers(), "the broker is registered")
    servers = ("-b", cluster.address(1))
    cluster.stop(victim)
    found = run_kctl("transactions", "hanging", "stuck", "-o", "json", *servers)
    clean = run_kctl("transactions", "hanging", "orders", *servers)
    cluster.start(victim)
    assert (found.exit_code, clean.exit_code) == (3, 1), found.stderr + clean.stderr
    assert [row["partition"] for row in found.json] == [p for p in range(3) if p != victim - 1]
    assert f"not searched, because there is no leader: stuck-{victim - 1}\n" in found.stderr
    assert "no hanging transactions found where it was possible to search" in clean.stderr


def test_dead_broker_that_is_still_registered_is_named(cluster: Cluster, victim: int) -> None:
    wait_until(lambda: victim in cluster.live_brokers(), "the broker is registered")
    cluster.kill(victim)
    for args in (("log-dirs", "--by", "broker"), ("groups", "list")):
        result = run_kctl(*args, "-b", cluster.address(1))
        assert result.exit_code == 4, result.stderr
        assert f"broker {victim} ({cluster.address(victim)}) is unreachable: " in result.stderr
        assert "cannot reach the cluster" not in result.stderr
