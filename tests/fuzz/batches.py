"""Fuzzes the validation of client batches: valid ones are damaged and appended to a log.

A batch must be appended or refused with an ApiError, in a time in proportion to its size. What was
appended must be readable by our decoder, which is not what validated it. Whether Kafka accepts the
same batches is compared live, in `beside_kafka`.
"""

import random
import tempfile
import time
from pathlib import Path

from crc32c import crc32c

from broker.clock import ManualClock
from broker.errors import ApiError
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.offsets import FetchIsolation
from broker.log.partition_log import PartitionLog
from broker.log.recovery import load_log
from broker.model import TopicPartition
from broker.records.batch import iterate_batches
from broker.records.builder import BatchSettings, build_batch, encode_records
from broker.records.compression import compress
from broker.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    Codec,
)
from broker.records.record import RecordTuple
from tests.fuzz.mutate import INTERESTING, mutate

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("fuzz", 0)
MAX_CPU_S = 5.0
ROUND = 500
"""Batches that go to the same log."""
CONFIGS = [
    LogConfig(),
    LogConfig(cleanup_policy=frozenset({"compact"})),
    LogConfig(message_timestamp_type="LogAppendTime"),
    *(LogConfig(compression_type=name) for name in ("lz4", "gzip", "zstd", "uncompressed")),
]


def fuzz_batches(count: int, seed: int) -> tuple[int, list[str]]:
    """Append `count` damaged batches; how many were accepted, and what went wrong."""
    rng = random.Random(seed)
    problems: list[str] = []
    accepted = done = 0
    while done < count:
        with tempfile.TemporaryDirectory(prefix="kctl-fuzz-") as directory:
            environment = LogEnvironment(clock=ManualClock(NOW_MS))
            log = load_log(Path(directory), PARTITION, rng.choice(CONFIGS), environment)
            for _ in range(min(ROUND, count - done)):
                data = damaged_batch(rng)
                before = log.log_end_offset
                if problem := _append(log, data):
                    problems.append(f"seed {seed}: {problem}: {data.hex()}")
                accepted += log.log_end_offset > before
                done += 1
    return accepted, problems


def _append(log: PartitionLog, data: bytes) -> str | None:
    """What is wrong with how a batch was treated; None if nothing is."""
    began, start = time.thread_time(), log.log_end_offset
    try:
        log.append_as_leader(memoryview(data), 0)
    except ApiError:
        return None if log.log_end_offset == start else "refused, but the log has grown"
    except Exception as error:  # noqa: BLE001  # the finding
        return f"{type(error).__name__}: {error}"
    if time.thread_time() - began > MAX_CPU_S:
        return f"took {time.thread_time() - began:.1f} s"
    if log.log_end_offset == start or _has_unchecked_sizes(log, data):
        return None
    try:
        return _read(log, start)
    except Exception as error:  # noqa: BLE001  # the finding
        return f"accepted, but not readable: {type(error).__name__}: {error}"


def _has_unchecked_sizes(log: PartitionLog, data: bytes) -> bool:
    """Kafka does not compare the size of a record in a compressed batch with its fields, unless it
    recompresses the batch; see `broker.records.scan`."""
    codec = Codec(data[ATTRIBUTES_POSITION + 1] & CODEC_MASK)
    return codec != Codec.NONE and log.config.compression_type in ("producer", codec.name.lower())


def _read(log: PartitionLog, start: int) -> str | None:
    found = log.read(start, 1 << 30, FetchIsolation.LOG_END)
    stored = found.records.read() if found.records is not None else b""
    for batch in iterate_batches(memoryview(stored)):
        records = batch.records()
        offsets = [record.offset for record in records]
        if batch.is_control:
            continue
        if len(offsets) != batch.header.records_count:
            return f"accepted with {len(offsets)} records of {batch.header.records_count}"
    return None


def damaged_batch(rng: random.Random, now_ms: int = NOW_MS) -> bytes:
    """A batch of a client, most often with damaged records, compressed bytes or header fields."""
    rows = [_row(rng, now_ms, number) for number in range(rng.choice([1, 1, 2, 3, 10, 100]))]
    codec = rng.choice(list(Codec))
    if rng.random() < 0.05:
        return mutate(build_batch(rows, BatchSettings(codec=codec)), rng)
    header = bytearray(build_batch(rows, BatchSettings(codec=codec))[:HEADER_SIZE])
    records = encode_records(rows, 0, min(row[1] for row in rows))
    if rng.random() < 0.6:
        records = mutate(records, rng)
    payload = compress(codec, records)
    if rng.random() < 0.3:
        payload = _mutate_end(payload, rng) if rng.random() < 0.5 else mutate(payload, rng)
    if rng.random() < 0.3:
        place = rng.randrange(ATTRIBUTES_POSITION, HEADER_SIZE)
        number = rng.choice(INTERESTING)
        header[place : place + len(number)] = number
        del header[HEADER_SIZE:]
    return _with_size_and_crc(bytes(header), payload)


def _mutate_end(data: bytes, rng: random.Random) -> bytes:
    """Damage the first or last bytes, where codecs have their headers and trailers."""
    size = rng.choice([1, 4, 20])
    if rng.random() < 0.5:
        return mutate(data[:size], rng) + data[size:]
    return data[:-size] + mutate(data[-size:], rng)


def _with_size_and_crc(header: bytes, payload: bytes) -> bytes:
    offset, _, epoch, magic, _, *rest = HEADER.unpack(header)
    length = HEADER_SIZE + len(payload) - LOG_OVERHEAD
    whole = HEADER.pack(offset, length, epoch, magic, 0, *rest) + payload
    crc = crc32c(whole[ATTRIBUTES_POSITION:])
    return HEADER.pack(offset, length, epoch, magic, crc, *rest) + payload


def _row(rng: random.Random, now_ms: int, number: int) -> RecordTuple:
    key = rng.choice([None, b"", b"key"])
    value = rng.choice([None, b"", rng.randbytes(rng.choice([1, 10, 300]))])
    headers = rng.choice([(), (("h", b"v"),), (("", None), ("x", b""))])
    return number, now_ms + rng.choice([0, 0, 1, 1000]), key, value, headers
