"""Groups and transactions while brokers are killed and restarted at random.

The long form: `python -m tests.group.kill_loop --kills 50 --seed 1 --clients java --brokers ours`.
It reports the longest pause between two commits of each client. When the kills stop, every client
must commit again within RECOVERY_S, and what was acknowledged is compared with what an independent
consumer reads (`kill_loop_checks`). `--brokers apache` runs the same against Apache Kafka: a pause
that is there too belongs to the client.

Brokers are killed at any time, also while they start. With `--whole` the next one is killed only
when the last one has started, which Apache Kafka needs to be available at all.

Java's clients are never replaced from outside: they must all survive. A librdkafka client that
does not commit again is replaced once by a new process, which must. This distinguishes a stuck
coordinator from a stuck client library: librdkafka 2.16 deadlocks when a broker that
disappeared from the metadata is dropped while its OffsetForLeaderEpoch request is in flight (its
issue 5476: two threads take rk_lock and the toppar lock in opposite order). That happened in one of
eight runs of 50 kills, and stopped, through the GIL, all other clients in the same process. In
addition, a transactional producer waits in `send_offsets_to_transaction` after three
FindCoordinator responses with COORDINATOR_NOT_AVAILABLE until a connection changes: those are
retried only twice.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.group.kill_loop_checks import check_acknowledged, check_exactly_once, check_feeders
from tests.group.kill_loop_processes import CLIENTS, ClientProcess, Progress
from tests.support.broker import STARTED
from tests.support.cluster import START_TIMEOUT_S, Cluster, running_cluster
from tests.support.zookeeper import running_zookeeper

RECOVERY_S = 60
HUNG_S = 25
"""Time after the kills at which a client that has not committed is replaced."""
PARTITIONS = 4
BROKERS = frozenset({1, 2, 3})
SETTINGS = {
    "default.replication.factor": 3,
    "num.partitions": PARTITIONS,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
}


@dataclass(frozen=True)
class Kills:
    """How often and how fast brokers are killed."""

    count: int
    seed: int
    wait_until_started: bool = False


def kill_at_random(cluster: Cluster, kills: Kills, report: Callable[[str], None]) -> None:
    """Kill random brokers one by one, and restart each."""
    chance = random.Random(kills.seed)
    for number in range(kills.count):
        victim = chance.choice(sorted(cluster.servers))
        cluster.kill(victim)
        time.sleep(chance.uniform(0, 0.3))
        cluster.launch(victim)
        uptime_s = chance.uniform(0.05, 3)
        report(f"kill {number + 1} of {kills.count} broker={victim} uptime_s={uptime_s:.2f}")
        if kills.wait_until_started:
            _until_started(cluster, victim)
        time.sleep(uptime_s)
    for broker_id in cluster.servers:
        _until_started(cluster, broker_id)


def _until_started(cluster: Cluster, broker_id: int) -> None:
    server = cluster.servers[broker_id]
    if broker_id in cluster.apache:
        server.wait_for_port(cluster.ports[broker_id], START_TIMEOUT_S)
    else:
        server.wait_for_line(STARTED, timeout_s=START_TIMEOUT_S)


def wait_for_commits(
    clients: list[ClientProcess], timeout_s: float, hung_s: float | None = None
) -> None:
    """Return when every role has committed three more times, else AssertionError."""
    began = time.monotonic()
    wanted = {progress: progress.commits + 3 for progress in _all_progress(clients)}
    while waiting := [progress for progress in wanted if progress.commits < wanted[progress]]:
        elapsed_s = time.monotonic() - began
        states = "\n".join(str(progress) for progress in wanted)
        assert elapsed_s < timeout_s, f"{len(waiting)} clients do not commit:\n{states}"
        if hung_s is not None and elapsed_s > hung_s:
            for client in clients:
                if not client.replaced and set(client.progress.values()) & set(waiting):
                    client.replace()
        time.sleep(0.1)


def _all_progress(clients: list[ClientProcess]) -> list[Progress]:
    return [progress for client in clients for progress in client.progress.values()]


def run(
    cluster: Cluster,
    kills: Kills,
    library: str,
    report: Callable[[str], None] = lambda line: None,
) -> None:
    """Start clients, kill brokers, and check that all clients continue."""
    clients = CLIENTS[library](cluster.bootstrap_servers, cluster.directory)
    try:
        wait_for_commits(clients, START_TIMEOUT_S)
        report("all clients commit")
        for progress in _all_progress(clients):
            progress.forget_pauses()
        kill_at_random(cluster, kills, report)
        stopped = time.monotonic()
        report("\n".join(str(progress) for progress in _all_progress(clients)))
        wait_for_commits(clients, RECOVERY_S, HUNG_S if library == "librdkafka" else None)
        hung = sum(client.replaced for client in clients)
        report(f"all commit again after {time.monotonic() - stopped:.1f} s, {hung} replaced")
    finally:
        for client in clients:
            client.stop()
    servers = cluster.bootstrap_servers
    report(f"exactly once: {check_exactly_once(servers, PARTITIONS)} records")
    if library == "java":
        roles = {progress.role: progress for progress in _all_progress(clients)}
        report(f"commits that are stored: {check_acknowledged(servers, roles, PARTITIONS)}")
        report(f"acknowledged records that are stored: {check_feeders(servers, roles, PARTITIONS)}")


def _print(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)


def main() -> None:
    """The long form, on a cluster of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", choices=sorted(CLIENTS), default="java")
    parser.add_argument("--brokers", choices=("ours", "apache"), default="ours")
    parser.add_argument("--whole", action="store_true", help="wait for each start")
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="kill-loop-"))
    print(directory)
    apache = BROKERS if given.brokers == "apache" else frozenset[int]()
    with (
        running_zookeeper(directory) as zookeeper,
        running_cluster(directory, zookeeper.fresh_chroot(), 3, SETTINGS, apache=apache) as cluster,
    ):
        run(cluster, Kills(given.kills, given.seed, given.whole), given.clients, _print)


if __name__ == "__main__":
    main()
