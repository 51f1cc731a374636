"""`python -m tests.soak [--seconds N]`: see the package."""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest
from tests.cluster.asking import make_topic
from tests.soak.churn import STEADY_TOPIC, Churn
from tests.soak.samples import (
    Descriptors,
    Sample,
    growing,
    leaked,
    num_descriptors,
    resident_mb,
)
from tests.support.ack_load import AckLoad, ack_load
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.zookeeper import running_zookeeper

PARTITIONS = 6
SETTINGS = {
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    # Forget what came and went within a minute.
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 10_000,
    "transactional.id.expiration.ms": 60_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 10_000,
    "producer.id.expiration.ms": 60_000,
    "producer.id.expiration.check.interval.ms": 10_000,
    "file.delete.delay.ms": 5000,
    "log.segment.bytes": 1_000_000,
    "log.retention.bytes": 3_000_000,
    "log.retention.check.interval.ms": 10_000,
    "log.cleaner.min.cleanable.ratio": 0.1,
    "log.cleaner.backoff.ms": 5000,
    "log.roll.ms": 60_000,
}
LONGEST_WAIT_S = 30.0
_REST_S = 150
"""Within this time deleted topics are gone from disk and idle files are closed."""


def main() -> int:
    """Run the load; exit 1 if something grows or a wait is as long as a timeout."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--interval", type=int, default=10, help="seconds between two samples")
    parser.add_argument("--csv", type=Path, help="write the samples to this file as well")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kctl-soak-")))
        home = directory / "zookeeper"
        home.mkdir()
        zookeeper = stack.enter_context(running_zookeeper(home))
        cluster = stack.enter_context(
            running_cluster(directory, zookeeper.fresh_chroot(), settings=SETTINGS)
        )
        make_topic(cluster, STEADY_TOPIC, _spread())
        servers = cluster.bootstrap_servers
        load = stack.enter_context(ack_load(servers, STEADY_TOPIC, PARTITIONS))
        wait_until(lambda: load.count > 100, "the producer is at work", _REST_S)
        before = Descriptors.of(cluster.servers.values(), directory)
        samples, churn = asyncio.run(_soak(cluster, load, arguments.seconds, arguments.interval))
        left = _left_open(cluster, before)
        if load.failed:
            print("not acknowledged:", load.failed[:5])
    if arguments.csv:
        rows = [Sample.header(), *(sample.row() for sample in samples)]
        arguments.csv.write_text("\n".join(rows) + "\n")
    print("done:", dict(churn.done), "errors:", dict(churn.errors))
    problems = growing(samples) + _long_waits(samples) + left
    print("growing:" if problems else "everything levels off", *problems)
    return bool(problems or load.failed)


def _left_open(cluster: Cluster, before: Descriptors) -> list[str]:
    """What brokers have open too much, some time after the churn has ended."""

    def problems() -> list[str]:
        servers, directory = cluster.servers.values(), cluster.directory
        num_files = sum(1 for path in directory.glob("data-*/**/*") if path.is_file())
        after = Descriptors.of(servers, directory)
        print("at rest:", after.sockets, "sockets,", after.files, "files; before:", before)
        return leaked(before, after, num_files)

    deadline = time.monotonic() + _REST_S
    while (found := problems()) and time.monotonic() < deadline:
        time.sleep(5)
    return found


def _long_waits(samples: list[Sample]) -> list[str]:
    longest_s = max(max(s.longest_ack_s, s.longest_metadata_s) for s in samples)
    return [f"a wait of {longest_s:.1f} s"] if longest_s > LONGEST_WAIT_S else []


def _spread() -> dict[int, list[int]]:
    return {index: [(index + step) % 3 + 1 for step in range(3)] for index in range(PARTITIONS)}


async def _soak(
    cluster: Cluster, load: AckLoad, seconds: int, interval_s: int
) -> tuple[list[Sample], Churn]:
    churn = Churn(cluster.bootstrap_servers)
    running = asyncio.create_task(churn.run())
    probe = _Probe(cluster.bootstrap_servers)
    probing = asyncio.create_task(probe.run())
    began = time.monotonic()
    samples: list[Sample] = []
    print(Sample.header())
    while time.monotonic() - began < seconds:
        await asyncio.sleep(interval_s)
        for task in (running, probing):
            if task.done():
                task.result()
        servers = cluster.servers.values()
        sample = Sample(
            int(time.monotonic() - began),
            sum(map(resident_mb, servers)),
            sum(map(num_descriptors, servers)),
            load.take_longest_wait(),
            probe.take_longest_wait(),
            churn.done.total(),
            churn.errors.total(),
        )
        samples.append(sample)
        print(sample.row(), flush=True)
    for task in (running, probing):
        task.cancel()
    await asyncio.wait([running, probing])
    return samples, churn


class _Probe:
    """A client that has nothing to do with the load, and asks for metadata."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._longest_wait_s = 0.0

    async def run(self) -> None:
        """Ask ten times a second."""
        async with Client(self._servers, request_timeout_s=60) as client:
            while True:
                began = time.monotonic()
                await client.send(MetadataRequest(topics=[]))
                self._longest_wait_s = max(self._longest_wait_s, time.monotonic() - began)
                await asyncio.sleep(0.1)

    def take_longest_wait(self) -> float:
        """The longest wait since the last call."""
        longest_wait_s, self._longest_wait_s = self._longest_wait_s, 0.0
        return longest_wait_s


if __name__ == "__main__":
    sys.exit(main())
