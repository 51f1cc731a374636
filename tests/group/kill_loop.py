"""Groups and transactions while brokers are killed and restarted at random.

The long form: `python -m tests.group.kill_loop [KILLS] [SEED] [CLIENT]`. When the kills stop,
every client must commit again within RECOVERY_S. CLIENT is aiokafka, whose processes must all
survive, or librdkafka.

A librdkafka client that does not is replaced once by a new process, which must. This distinguishes
a stuck coordinator from a stuck client library: librdkafka 2.16 deadlocks when a broker that
disappeared from the metadata is dropped while its OffsetForLeaderEpoch request is in flight (its
issue 5476: two threads take rk_lock and the toppar lock in opposite order). That happened in one of
eight runs of 50 kills, and stopped, through the GIL, all other clients in the same process. In
addition, a transactional producer waits in `send_offsets_to_transaction` after three
FindCoordinator responses with COORDINATOR_NOT_AVAILABLE until a connection changes: those are
retried only twice.
"""

import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import TopicPartition

from tests.group.kill_loop_clients import OUTPUT, consumer
from tests.support.broker import STARTED
from tests.support.cluster import Cluster, running_cluster
from tests.support.consumed import partition_of, value_of
from tests.support.zookeeper import running_zookeeper

RECOVERY_S = 60
HUNG_S = 25
"""Time after the kills at which a client that has not committed is replaced."""
PARTITIONS = 4
CLIENTS = {
    "aiokafka": "tests.group.kill_loop_aiokafka",
    "librdkafka": "tests.group.kill_loop_clients",
}
SETTINGS = {
    "default.replication.factor": 3,
    "num.partitions": PARTITIONS,
    "min.insync.replicas": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
}


class ClientProcess:
    """One client; see `kill_loop_clients`."""

    def __init__(self, role: str, servers: str, module: str) -> None:
        self.role = role
        self._module = module
        self._servers = servers
        self.commits = 0
        """Acknowledged commits so far."""
        self.replaced = 0
        """How many processes hung and were replaced."""
        self._errors: deque[str] = deque(maxlen=3)
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", self._module, self.role, self._servers]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        return process

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if line.startswith("commit"):
                    self.commits += 1
                else:
                    self._errors.append(line.strip())

    def replace(self) -> None:
        """Replace a process that hangs."""
        self.stop()
        self.replaced += 1
        self._process = self._start()

    def stop(self) -> None:
        """End the process, as a crash would."""
        self._process.kill()
        self._process.wait()

    @property
    def state(self) -> str:
        """Commits and last errors, for messages."""
        return f"{self.role}: commits={self.commits} replaced={self.replaced} {list(self._errors)}"


def kill_at_random(
    cluster: Cluster, kills: int, chance: random.Random, report: Callable[[str], None]
) -> None:
    """Kill random brokers one by one, and restart each without waiting for it."""
    for number in range(kills):
        victim = chance.choice(sorted(cluster.servers))
        cluster.kill(victim)
        time.sleep(chance.uniform(0, 0.3))
        cluster.launch(victim)
        uptime_s = chance.uniform(0.05, 3)
        report(f"kill {number + 1} of {kills} broker={victim} uptime_s={uptime_s:.2f}")
        time.sleep(uptime_s)


def wait_for_commits(
    clients: list[ClientProcess], timeout_s: float, hung_s: float | None = None
) -> None:
    """Return when every client has committed three more times, else AssertionError."""
    began = time.monotonic()
    wanted = {client: client.commits + 3 for client in clients}
    while waiting := [client for client in clients if client.commits < wanted[client]]:
        elapsed_s = time.monotonic() - began
        states = "\n".join(client.state for client in clients)
        assert elapsed_s < timeout_s, f"{len(waiting)} clients do not commit:\n{states}"
        if hung_s is not None and elapsed_s > hung_s:
            for client in waiting:
                if not client.replaced:
                    client.replace()
        time.sleep(0.1)


def check_exactly_once(cluster: Cluster) -> int:
    """Check that no input record is in the output twice; returns the number of records."""
    reader = consumer(cluster.bootstrap_servers, "checker")
    ends = {}
    for partition in range(PARTITIONS):
        place = TopicPartition(OUTPUT, partition)
        ends[partition] = reader.get_watermark_offsets(place, 20)[1]
    reader.assign([TopicPartition(OUTPUT, partition, 0) for partition in ends])
    seen: set[tuple[int, bytes]] = set()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for message in reader.consume(500, 0.5):
            assert message.error() is None, message.error()
            key = partition_of(message), value_of(message)
            assert key not in seen, f"twice in the output: {key}"
            seen.add(key)
        positions = reader.position([TopicPartition(OUTPUT, p) for p in ends])
        if all(p.offset >= ends[p.partition] for p in positions if ends[p.partition]):
            break
    else:
        raise AssertionError(f"read_committed does not reach the end: {positions} {ends}")
    reader.close()
    return len(seen)


def run(
    cluster: Cluster,
    kills: int,
    seed: int,
    library: str = "aiokafka",
    report: Callable[[str], None] = lambda line: None,
) -> None:
    """Start clients, kill brokers, and check that all clients continue."""
    servers = cluster.bootstrap_servers
    roles = ("feeder", "member", "member", "transformer")
    clients = [ClientProcess(role, servers, CLIENTS[library]) for role in roles]
    try:
        wait_for_commits(clients, 60)
        report("all clients commit")
        kill_at_random(cluster, kills, random.Random(seed), report)
        for server in cluster.servers.values():
            server.wait_for_line(STARTED, timeout_s=60)
        stopped = time.monotonic()
        report("\n".join(client.state for client in clients))
        wait_for_commits(clients, RECOVERY_S, HUNG_S if library == "librdkafka" else None)
        hung = sum(client.replaced for client in clients)
        report(f"all commit again after {time.monotonic() - stopped:.1f} s, {hung} replaced")
    finally:
        for client in clients:
            client.stop()
    report(f"exactly once: {check_exactly_once(cluster)} records")


def _print(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)


def main() -> None:
    """The long form, on a cluster of its own."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    library = sys.argv[3] if len(sys.argv) > 3 else "aiokafka"
    directory = Path(tempfile.mkdtemp(prefix="kill-loop-"))
    print(directory)
    with (
        running_zookeeper(directory) as zookeeper,
        running_cluster(directory, zookeeper.fresh_chroot(), 3, SETTINGS) as cluster,
    ):
        run(cluster, kills, seed, library, _print)


if __name__ == "__main__":
    main()
