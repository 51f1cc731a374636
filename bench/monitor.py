"""One cycle of `kctl monitor`: 5,000 groups with 20 partitions each.

Beside kafka_exporter (Go) on the same broker, if it is on the PATH:
go install github.com/danielqsj/kafka_exporter@latest
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from bench.report import Comparison
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.api.requests import create_topic
from tests.support.broker import RunningBroker, running_broker
from tests.support.cluster import wait_until
from tests.support.processes import free_port
from tests.support.wire import WireClient

GROUPS, PARTITIONS = 5_000, 20
GOAL_S = 10.0


def run() -> Iterator[Comparison]:
    """Seconds of a cycle, with the start of the process."""
    with (
        tempfile.TemporaryDirectory() as directory,
        running_broker(Path(directory), offsets_topic_num_partitions=10) as broker,
    ):
        _commit(broker)
        ours_s = _kctl(broker)
        what = f"cycle, {GROUPS:,} groups of {PARTITIONS} partitions"
        yield Comparison(what, ours_s, GOAL_S, "goal", "s", 1.0)
        exporter = shutil.which("kafka_exporter")
        if exporter is not None:
            yield Comparison(what, ours_s, _exporter(exporter, broker), "kafka_exporter", "s")


def _commit(broker: RunningBroker) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        create_topic(wire, "orders", PARTITIONS)
        finding = FindCoordinatorRequest(coordinator_keys=["group-0"], key_type=0)
        wait_until(lambda: not wire.ask(finding, 4).coordinators[0].error_code, "a coordinator")
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=number, committed_offset=0, committed_metadata=""
            )
            for number in range(PARTITIONS)
        ]
        topics = [OffsetCommitRequestTopic(name="orders", partitions=partitions)]
        for number in range(GROUPS):
            request = OffsetCommitRequest(group_id=f"group-{number}", topics=topics)
            wait_until(lambda request=request: _is_committed(wire, request), "committed")  # type: ignore[misc]


def _is_committed(wire: WireClient, request: OffsetCommitRequest) -> bool:
    answer = wire.ask(request, 8)
    return not any(one.error_code for one in answer.topics[0].partitions)


def _kctl(broker: RunningBroker) -> float:
    words = ["monitor", "run", "--once", "--names", "kafka-exporter", "--timeout", "60"]
    began_s = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-m", "kctl", *words, "-b", broker.bootstrap_servers],
        capture_output=True,
        text=True,
        check=True,
    )
    spent_s = time.perf_counter() - began_s
    assert result.stdout.count("kafka_consumergroup_lag{") == GROUPS * PARTITIONS
    return spent_s


def _exporter(path: str, broker: RunningBroker) -> float:
    port = free_port()
    command = [path, f"--kafka.server={broker.bootstrap_servers}"]
    began_s = time.perf_counter()
    process = subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while True:
            try:
                with urlopen(f"http://127.0.0.1:{port}/metrics") as response:
                    text = response.read().decode()
                break
            except URLError:
                time.sleep(0.02)
        assert text.count("kafka_consumergroup_lag{") == GROUPS * PARTITIONS
        return time.perf_counter() - began_s
    finally:
        process.terminate()
        process.wait()
