"""A chaos run: load on three brokers while faults happen, then all records are compared."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.clients import Load, start_load
from tests.chaos.faults import HEAL_S, Fault, Stage
from tests.chaos.replicas import check_replicas
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.zookeeper import running_zookeeper

SETTINGS = {
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "unclean.leader.election.enable": "false",
    "replica.lag.time.max.ms": 3000,
    "log.segment.bytes": 500_000,  # so that segments roll meanwhile
}

Say = Callable[[str], None]


@contextmanager
def stage(directory: Path, seed: int) -> Iterator[Stage]:
    """Three brokers on a ZooKeeper of their own, which can be restarted."""
    home = directory / "zookeeper"
    home.mkdir()
    with (
        running_zookeeper(home) as zookeeper,
        running_cluster(directory, zookeeper.fresh_chroot(), settings=SETTINGS) as cluster,
    ):
        yield Stage(cluster, zookeeper, random.Random(seed))


def run_chaos(place: Stage, faults: Iterable[Fault], seconds: float, say: Say) -> None:
    """Cause faults, one after the other, for this long; then check everything."""
    load = start_load(place.cluster.bootstrap_servers)
    try:
        wait_until(lambda: _everybody_is_at_work(load), "everybody is at work", HEAL_S)
        let_happen(place, faults, seconds, say)
        load.stop()
    finally:
        load.give_up()
    say(load.summary())
    say(f"{check_replicas(place.cluster)} batches are the same on all replicas")
    load.check(place.cluster.bootstrap_servers)
    check_output(place.cluster)


def let_happen(place: Stage, faults: Iterable[Fault], seconds: float, say: Say) -> None:
    """Cause one fault after the other; at the end all brokers run."""
    since = time.monotonic()
    for fault in faults:
        say(f"{time.monotonic() - since:6.1f} s  {fault.__doc__}")
        fault(place)
        if time.monotonic() - since > seconds:
            break
        place.linger(3)
    place.heal()
    say(f"{time.monotonic() - since:6.1f} s  The cluster is whole again.")


def _everybody_is_at_work(load: Load) -> bool:
    return bool(
        all(sending.promised for sending in load.sending)
        and load.transacting.committed
        and all(member.committed for member in load.pair)
        and load.read_committed.committed
    )


def check_output(cluster: Cluster) -> None:
    """A broker handles every fault: it logs no traceback and misses no wake-up of a partition."""
    for log_file in sorted(cluster.directory.glob("broker-*.log")):
        output = log_file.read_text()
        assert "Traceback" not in output, f"{log_file.name}:\n{output[-4000:]}"
        assert "missed wake-ups" not in output, f"{log_file.name}:\n{output[-4000:]}"
