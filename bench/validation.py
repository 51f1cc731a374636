"""Validating a producer's batch of 16 KB: our broker and Apache Kafka's LogValidator.

CPU time of one thread, the best of several rounds. For uncompressed batches also the share of
validation in appending to the log, which is part of a produce request.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from bench.report import Comparison
from broker.clock import ManualClock
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.recovery import load_log
from broker.log.validator import largest_timestamp
from broker.model import TopicPartition
from broker.records.batch import iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec
from kctl.dev.apache_kafka import kafka_command

NOW_MS: Final = 1_700_000_000_000
RECORDS: Final = {100: 160, 1000: 16}
"""The number of records in a batch, by their size in bytes."""
ROUNDS: Final = 15
REPETITIONS: Final = 200


def run() -> Iterator[Comparison]:
    """Each codec with small and large records."""
    batches = {
        f"{count} x {size} B, {codec.name.lower()}": _batch(count, size, codec)
        for size, count in RECORDS.items()
        for codec in Codec
    }
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as directory:
        theirs = _kafkas(list(batches.values()), Path(directory))
        for (name, batch), kafka_us in zip(batches.items(), theirs, strict=True):
            ours_us = _ours(batch)
            yield Comparison(f"validate {name}", ours_us, kafka_us, "Kafka", "us", goal=1)
            if name.endswith("none"):
                append_us = _append(batch, Path(directory))
                yield Comparison(
                    f"validate {name}", ours_us, append_us, "whole append", "us", goal=0.05
                )


def _batch(count: int, size: int, codec: Codec) -> bytes:
    """Half of each value is random, so that compression has work to do."""
    half = size // 2
    rows = [(n, NOW_MS, None, os.urandom(half) + bytes(size - half), ()) for n in range(count)]
    return build_batch(rows, BatchSettings(codec=codec))


def _ours(data: bytes) -> float:
    view = memoryview(bytearray(data))
    (batch,) = iterate_batches(view)
    header = batch.header
    arguments = (view, header.attributes, header.base_timestamp, header.records_count)
    return _microseconds(lambda: largest_timestamp(*arguments))


def _append(data: bytes, directory: Path) -> float:
    directory = Path(tempfile.mkdtemp(dir=directory))
    config = LogConfig(message_timestamp_before_max_ms=2**62)
    environment = LogEnvironment(clock=ManualClock(NOW_MS))
    log = load_log(directory, TopicPartition("t", 0), config, environment)
    view = memoryview(bytearray(data))
    return _microseconds(lambda: log.append_as_leader(view, 0))


def _microseconds(function: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        since = time.thread_time()
        for _ in range(REPETITIONS):
            function()
        best = min(best, (time.thread_time() - since) / REPETITIONS)
    return best * 1e6


def _kafkas(batches: list[bytes], directory: Path) -> list[float]:
    paths = []
    for number, batch in enumerate(batches):
        path = directory / f"batch-{number}"
        path.write_bytes(batch)
        paths.append(str(path))
    source = Path(__file__).parent / "Validation.java"
    done = subprocess.run(
        kafka_command(str(source), *paths), capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise RuntimeError(done.stderr or done.stdout)
    return [int(line) / 1000 for line in done.stdout.split()]
