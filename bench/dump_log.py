"""`kctl dump-log --format kafka` compared with kafka-dump-log on one segment, including start-up.

The segment looks like that of a busy idempotent producer with default settings: 520 MB in batches
of 16 KB, records of 100 bytes with keys, about a hundred per millisecond. Both tools print into a
pipe whose content is discarded. Their output is compared on the first megabytes.
"""

import random
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from crc32c import crc32c

from bench.report import Comparison
from broker.records.builder import encode_records
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
)
from kctl.cli.output import Output
from tests.support.real_kafka import CACHE, java_command

SEGMENT_BYTES = 520_000_000
RECORDS_PER_BATCH = 130
RECORDS_PER_MS = 100
DIFFERENT_BATCHES = 64
START_MS = 1_700_000_000_000
SAMPLE_BYTES = 3_000_000
ROUNDS = 3
PEER = "kafka-dump-log 3.9"


def run() -> Iterator[Comparison]:
    """Measure rates and, for our tool alone, how memory grows with the file."""
    if not (CACHE / "libs").exists():
        Output().note("dump_log: skipped, no Kafka jars; `make test-kafka` downloads them")
        return
    with TemporaryDirectory() as directory:
        path = Path(directory) / "orders-0" / f"{0:020d}.log"
        path.parent.mkdir()
        records = write_segment(path, SEGMENT_BYTES)
        _check_same_text(path)
        yield _compare("batches only", path, SEGMENT_BYTES / 1e6, "MB/s", 1.5)
        yield _compare("every record", path, records / 1e3, "k records/s", 3, "--print-data-log")
        yield _compare_memory(path)


def write_segment(path: Path, size: int) -> int:
    """Write a segment of at least `size` bytes and return its number of records."""
    chooser = random.Random(1)
    payloads = [_payload(chooser) for _ in range(DIFFERENT_BATCHES)]
    offset = written = 0
    with path.open("wb") as file:
        while written < size:
            payload = payloads[offset // RECORDS_PER_BATCH % DIFFERENT_BATCHES]
            written += file.write(_header(offset, payload))
            written += file.write(payload)
            offset += RECORDS_PER_BATCH
    return offset


def _payload(chooser: random.Random) -> bytes:
    letters = string.ascii_letters + string.digits
    rows = []
    for index in range(RECORDS_PER_BATCH):
        key = f"user-{chooser.randrange(1_000_000)}".encode()
        value = "".join(chooser.choices(letters, k=100)).encode()
        rows.append((index, index // RECORDS_PER_MS, key, value, ()))
    return encode_records(rows, 0, 0)


def _header(offset: int, payload: bytes) -> bytes:
    """Header of a batch whose offset, timestamp and sequence continue the previous batch."""
    base_timestamp = START_MS + offset // RECORDS_PER_MS
    max_timestamp = base_timestamp + (RECORDS_PER_BATCH - 1) // RECORDS_PER_MS
    length = HEADER_SIZE - LOG_OVERHEAD + len(payload)
    head = (offset, length, 0, CURRENT_MAGIC)
    last_delta = RECORDS_PER_BATCH - 1
    producer = (4000, 0, offset)
    tail = (0, last_delta, base_timestamp, max_timestamp, *producer, RECORDS_PER_BATCH)
    crc = crc32c(payload, crc32c(HEADER.pack(*head, 0, *tail)[ATTRIBUTES_POSITION:]))
    return HEADER.pack(*head, crc, *tail)


def _ours(path: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "kctl", "dump-log", "--format", "kafka", *options, str(path)]


def _theirs(path: Path, *options: str) -> list[str]:
    return java_command("kafka.tools.DumpLogSegments", *options, "--files", str(path))


def _check_same_text(path: Path) -> None:
    options = ("--print-data-log", "--max-bytes", str(SAMPLE_BYTES))
    commands = (_ours(path, *options), _theirs(path, *options))
    ours, theirs = (subprocess.run(command, stdout=subprocess.PIPE) for command in commands)
    assert ours.stdout == theirs.stdout, "both sides must print the same"


def _compare(
    what: str, path: Path, amount: float, unit: str, goal: float, *options: str
) -> Comparison:
    """Best of ROUNDS rounds, in which the tools take turns."""
    ours = theirs = float("inf")
    for _ in range(ROUNDS):
        ours = min(ours, _seconds(_ours(path, *options)))
        theirs = min(theirs, _seconds(_theirs(path, *options)))
    return Comparison(
        what=f"dump-log, {what}",
        ours=amount / ours,
        theirs=amount / theirs,
        peer=PEER,
        unit=unit,
        goal=goal,
        more_is_better=True,
    )


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    _peak_kilobytes(command)
    return time.perf_counter() - start


def _compare_memory(path: Path) -> Comparison:
    """Our peak memory on the whole segment and on a tenth of it; it must not grow."""
    small = path.parent / f"{1:020d}.log"
    write_segment(small, SEGMENT_BYTES // 10)
    return Comparison(
        what="dump-log, every record, peak memory",
        ours=_peak_kilobytes(_ours(path, "--print-data-log")) / 1e3,
        theirs=_peak_kilobytes(_ours(small, "--print-data-log")) / 1e3,
        peer="the same on a tenth of the file",
        unit="MB",
        goal=1.1,
    )


# Runs a command, discards its output and prints the command's peak memory.
_WATCHER = """
import resource, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
while child.stdout.read(1 << 20): pass
assert child.wait() == 0
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def _peak_kilobytes(command: list[str]) -> int:
    watched = [sys.executable, "-c", _WATCHER, *command]
    return int(subprocess.run(watched, check=True, stdout=subprocess.PIPE).stdout)
