"""Logs written by Kafka decode to the output of Kafka's dump tool."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import CorruptRecord
from broker.records.batch import Batch, BatchHeader, check_crc, increment_sequence, iterate_batches
from broker.records.control import read_end_transaction_marker
from broker.records.layout import TimestampType
from broker.records.legacy import read_crcs
from broker.records.record import Record
from tests.records.golden import EXPECTED, PARTITIONS, segments

TIMESTAMP_TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


@pytest.mark.parametrize("partition", PARTITIONS)
def test_every_batch_and_record_reads_as_kafka_dump_log_prints_it(partition: str) -> None:
    expected = (EXPECTED / partition / "log-data.txt").read_bytes().decode()
    printed = "".join(line for segment in segments(partition) for line in dump(segment))

    assert unify(printed) == unify(expected.partition("Exception in thread")[0])


def test_a_torn_tail_ends_the_iteration_quietly_at_the_last_whole_batch() -> None:
    torn = segments("corrupt/torn-0")[-1].read_bytes()
    batches = iterate_batches(torn)

    last = list(batches)[-1]

    assert batches.is_cut_short
    assert batches.position == last.end_position == len(torn) - 501


def test_a_tail_of_zeros_raises_where_it_begins() -> None:
    batches = iterate_batches(segments("corrupt/zerotail-0")[-1].read_bytes())

    with pytest.raises(CorruptRecord, match=r"position 9766: .* at least 14, found 0"):
        list(batches)

    assert batches.position == 9766


def test_one_flipped_bit_fails_the_crc_of_its_batch_only() -> None:
    batches = list(iterate_batches(segments("corrupt/flipped-0")[1].read_bytes()))

    (damaged,) = [batch for batch in batches if not batch.is_crc_valid()]

    assert damaged.position == 7744
    with pytest.raises(CorruptRecord, match=r"position 7744, .*expected crc 3417655663, found"):
        check_crc(damaged)


def unify(text: str) -> str:
    """Reduce each run of U+FFFD to one: Java and Python write different numbers of them."""
    return re.sub("\ufffd+", "\ufffd", text)


def dump(segment: Path) -> Iterator[str]:
    """What kafka-dump-log --print-data-log prints for one segment."""
    yield f"Dumping {segment.parent.name}/{segment.name}\n"
    yield f"Log starting offset: {int(segment.stem)}\n"
    batches = iterate_batches(segment.read_bytes())
    try:
        for batch in batches:
            yield batch_line(batch)
            yield from record_lines(batch)
    except CorruptRecord:
        return
    if batches.is_cut_short:
        invalid = segment.stat().st_size - batches.position
        yield f"Found {invalid} invalid bytes at the end of {segment.name}\n"


def batch_line(batch: Batch) -> str:
    header = batch.header
    time = f"{TIMESTAMP_TYPES[header.timestamp_type]}: {batch.max_timestamp}"
    tail = (
        f"position: {batch.position} {time} size: {batch.size_in_bytes} magic: {batch.magic} "
        f"compresscodec: {batch.codec.name.lower()} crc: {header.crc} "
        f"isvalid: {str(batch.is_crc_valid()).lower()}\n"
    )
    return (current_head(header) if batch.magic == 2 else f"offset: {batch.last_offset} ") + tail


def current_head(header: BatchHeader) -> str:
    horizon = header.delete_horizon_ms
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
        f"count: {header.records_count} baseSequence: {header.base_sequence} "
        f"lastSequence: {header.last_sequence} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {str(header.is_transactional).lower()} "
        f"isControl: {str(header.is_control).lower()} "
        f"deleteHorizonMs: OptionalLong{'.empty' if horizon is None else f'[{horizon}]'} "
    )


def record_lines(batch: Batch) -> Iterator[str]:
    crcs = read_crcs(batch.view) if batch.magic < 2 else []
    for index, record in enumerate(batch.records()):
        yield (
            f"| offset: {record.offset} {TIMESTAMP_TYPES[batch.header.timestamp_type]}: "
            f"{record.timestamp} keySize: {size(record.key)} valueSize: {size(record.value)}"
        )
        if batch.magic == 2:
            yield f" sequence: {sequence(batch, record)}"
            yield f" headerKeys: [{','.join(key for key, _ in record.headers)}]"
        else:
            stored, computed = crcs[index]
            yield f" isValid: {str(stored == computed).lower()} crc: {stored}}}"
        yield contents(batch, record) + "\n"


def contents(batch: Batch, record: Record) -> str:
    if batch.is_control:
        marker = read_end_transaction_marker(record.key, record.value)
        name, epoch = marker.control_type.name, marker.coordinator_epoch
        return f" endTxnMarker: {name} coordinatorEpoch: {epoch}"
    key = "" if record.key is None else f" key: {record.key.decode(errors='replace')}"
    value = "" if record.value is None else f" payload: {record.value.decode(errors='replace')}"
    return key + value


def sequence(batch: Batch, record: Record) -> int:
    base = batch.header.base_sequence
    delta = record.offset - batch.header.base_offset
    return base if base < 0 else increment_sequence(base, delta)


def size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
