"""Power loss with `flush.messages=1`: what was acknowledged is on the medium, for every `acks`.

A process that is killed leaves the page cache behind, so killing does not show a missing flush.
Here the disk of a broker remembers what was synced of each file; only that is left for the next
start.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.config import load_config
from broker.log.files import FileSystem, OpenFile
from broker.net.client import Client
from broker.net.poller import BrokerLoop
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.server import Server
from broker.server.platform import Platform
from tests.crash.workload import read_log
from tests.log.support import batch
from tests.support.broker import running_broker

TOPIC, PARTITIONS = "flushed", 3
PRODUCERS, REQUESTS = 12, 25
TOTAL = PRODUCERS * REQUESTS * PARTITIONS


class SyncedDisk(FileSystem):
    """Remembers what was synced of every `.log` file, and whether its directory was.

    A sync takes a few milliseconds, so that appends arrive while it runs.
    """

    def __init__(self) -> None:
        self.synced: dict[Path, bytes] = {}
        self.num_syncs = 0
        self._unlinked: set[Path] = set()
        self._lock = threading.Lock()

    def create_file(self, path: Path) -> OpenFile:
        """Until its directory is synced, a new file is gone after a power loss."""
        self._unlinked.add(path)
        return super().create_file(path)

    def sync_data(self, file: OpenFile) -> None:
        """What is in the file when the sync begins is on the medium when it has ended."""
        content = file.read(0, file.size())
        time.sleep(0.005)
        with self._lock:
            self.num_syncs += 1
            self.synced[file.path] = content

    def sync(self, file: OpenFile) -> None:
        """See FileSystem."""
        content = file.read(0, file.size())
        with self._lock:
            self.synced[file.path] = content

    def sync_directory(self, path: Path) -> None:
        """See FileSystem."""
        self._unlinked = {file for file in self._unlinked if file.parent != path}

    def surviving(self) -> dict[Path, bytes]:
        """The `.log` files after a power loss at this moment."""
        with self._lock:
            files = dict(self.synced)
        return {
            path: content
            for path, content in files.items()
            if path.suffix == ".log" and path not in self._unlinked
        }


@asynccontextmanager
async def server(directory: Path, disk: FileSystem) -> AsyncIterator[str]:
    """A broker in this event loop, on this disk; its address."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory),
        "log.flush.interval.messages": "1",
        "log.segment.bytes": "2000",  # so that windows contain rolls
    }
    running = Server(load_config(None, settings), Platform(fs=disk))
    await running.start()
    try:
        address = running.listeners[0].address
        yield f"{address.host}:{address.port}"
    finally:
        await running.stop()


class Acknowledged:
    """The values that were acknowledged so far; `is_half` is set when that is half of all."""

    def __init__(self) -> None:
        self.values: set[bytes] = set()
        self.is_half = asyncio.Event()

    def add(self, values: list[str]) -> None:
        """All values of one request."""
        self.values.update(value.encode() for value in values)
        if len(self.values) >= TOTAL / 2:
            self.is_half.set()


async def produce(address: str, producer: int, acks: int, acknowledged: Acknowledged) -> None:
    """Send one record to every partition with each request."""
    async with Client(address) as client:
        for number in range(REQUESTS):
            values = [f"{producer} {number} {index}" for index in range(PARTITIONS)]
            data = [
                PartitionProduceData(index=index, records=batch(value))
                for index, value in enumerate(values)
            ]
            request = ProduceRequest(
                transactional_id=None,
                acks=acks,
                timeout_ms=30_000,
                topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
            )
            (topic,) = (await client.send(request)).responses
            assert [part.error_code for part in topic.partition_responses] == [0] * PARTITIONS
            acknowledged.add(values)


async def run_until_power_loss(directory: Path, acks: int) -> tuple[set[bytes], dict[Path, bytes]]:
    """What was acknowledged half-way through a load, and what was left on the medium then."""
    disk, acknowledged = SyncedDisk(), Acknowledged()
    async with server(directory, disk) as address:
        async with Client(address) as client:
            topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
            await client.send_to_controller(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        before = disk.num_syncs
        load = [
            asyncio.ensure_future(produce(address, producer, acks, acknowledged))
            for producer in range(PRODUCERS)
        ]
        await acknowledged.is_half.wait()
        lost = set(acknowledged.values), disk.surviving()
        await asyncio.gather(*load)
        # Group commit: the producers' appends share flushes.
        assert disk.num_syncs - before < TOTAL / 2
    return lost


@pytest.mark.parametrize("acks", [1, -1])
def test_what_was_acknowledged_with_flush_messages_survives_a_power_loss(
    tmp_path: Path, acks: int
) -> None:
    directory = tmp_path / "data"
    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        acknowledged, surviving = runner.run(run_until_power_loss(directory, acks))
    for path in directory.glob(f"{TOPIC}-*/*"):
        if path.name != "partition.metadata" and path not in surviving:
            path.unlink()
    for path, content in surviving.items():
        if path.parent.name.startswith(TOPIC):
            path.write_bytes(content)
    for name in ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (directory / name).unlink(missing_ok=True)
    (directory / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    with running_broker(tmp_path) as broker:
        log = read_log(broker.bootstrap_servers, TOPIC)
        found = {value for records in log for _, value in records}
        assert not acknowledged - found
