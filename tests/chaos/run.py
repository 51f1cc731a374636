"""A chaos run: load on three brokers while faults happen, then all records are compared."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.chaos import disk_faults, faults, network_faults
from tests.chaos.clients import Load, start_load
from tests.chaos.disk_faults import mount_disk
from tests.chaos.ensemble import running_ensemble
from tests.chaos.faults import Fault
from tests.chaos.liveness import check_recovery
from tests.chaos.namespaces import have_namespaces
from tests.chaos.network import HOSTS, ZOOKEEPER, in_host, running_network
from tests.chaos.replicas import check_replicas
from tests.chaos.shifted_clock import write_shift
from tests.chaos.stage import BROKERS, HEAL_S, Stage
from tests.support.cluster import Cluster, running_cluster, wait_until

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


def all_faults() -> tuple[Fault, ...]:
    """The faults that are possible here."""
    if have_namespaces():
        return (*faults.ALL, *disk_faults.ALL, *network_faults.ALL)
    return (*faults.ALL, *disk_faults.WITHOUT_MOUNTS)


@contextmanager
def stage(directory: Path, seed: int, num_zookeepers: int = 3) -> Iterator[Stage]:
    """Three brokers on a ZooKeeper of their own, with a network and disks if possible."""
    clocks = {broker_id: directory / f"clock-{broker_id}" for broker_id in BROKERS}
    for clock in clocks.values():
        write_shift(clock, 0)
    with ExitStack() as running:
        network = running.enter_context(running_network()) if have_namespaces() else None
        ensemble = running.enter_context(
            running_ensemble(
                directory / "zookeeper", num_zookeepers, HOSTS[ZOOKEEPER], _in_zookeeper
            )
            if network
            else running_ensemble(directory / "zookeeper", num_zookeepers)
        )
        hosts = {broker_id: HOSTS[f"broker-{broker_id}"] for broker_id in BROKERS}
        cluster = running.enter_context(
            running_cluster(
                directory,
                ensemble.fresh_chroot(),
                settings=SETTINGS,
                hosts=hosts if network else {},
                wrap=partial(_in_broker, clocks),
                before_start=_mount_disks,
            )
        )
        yield Stage(cluster, ensemble, random.Random(seed), network, clocks)


def _in_zookeeper(command: list[str]) -> list[str]:
    return in_host(ZOOKEEPER, command)


def _in_broker(clocks: dict[int, Path], broker_id: int, command: list[str]) -> list[str]:
    """The command of a broker, on its host and with a clock that can be set."""
    python, _, _, *arguments = command
    command = [python, "-m", "tests.chaos.shifted_clock", str(clocks[broker_id]), *arguments]
    return in_host(f"broker-{broker_id}", command) if have_namespaces() else command


def _mount_disks(cluster: Cluster) -> None:
    if have_namespaces():
        for broker_id in BROKERS:
            mount_disk(cluster.log_dir(broker_id))


def run_chaos(place: Stage, faults: Iterable[Fault], seconds: float, say: Say) -> None:
    """Cause faults, one after the other, for this long; then check everything."""
    load = start_load(place.cluster.bootstrap_servers)
    try:
        wait_until(lambda: _everybody_is_at_work(load), "everybody is at work", HEAL_S)
        let_happen(place, faults, seconds, say)
        recovery_s = check_recovery(place.cluster, load)
        say(f"{recovery_s:.1f} s after the last fault all ISRs are complete and all clients move")
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
