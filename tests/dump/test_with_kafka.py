"""Comparison with kafka-dump-log on segments that are not among the golden logs."""

import subprocess
from pathlib import Path

import pytest

from broker.log.layout import SNAPSHOT
from broker.log.producer_snapshot import SnapshotEntry, encode_snapshot
from broker.protocol.codec import encode
from broker.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec
from broker.records.record import RecordTuple
from tests.support.kctl import Kctl
from tests.support.real_kafka import java_command

pytestmark = pytest.mark.kafka

NOW_MS = 1_700_000_000_000
TOOL = "kafka.tools.DumpLogSegments"


def kafka_dump(directory: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(java_command(TOOL, *args), cwd=directory, capture_output=True, timeout=60)


def same(kctl: Kctl, monkeypatch: pytest.MonkeyPatch, path: Path, *options: str) -> None:
    """Both tools print the same for one or more files, on stdout and stderr."""
    paths = sorted(path.iterdir()) if path.is_dir() else [path]
    directory = paths[0].parents[1]
    names = ",".join(str(path.relative_to(directory)) for path in paths)
    monkeypatch.chdir(directory)

    theirs = kafka_dump(directory, "--files", names, *options)
    ours = kctl("dump-log", "--format", "kafka", "--files", names, *options)

    assert ours.output == theirs.stdout.decode().replace("\r\n", "\n")
    assert ours.stderr == theirs.stderr.decode()
    assert ours.exit_code == theirs.returncode == 0


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    return directory


def strange_records(first: int, count: int, step: int = 1) -> list[RecordTuple]:
    """Keys and values of every kind: null, empty, text, surrogates, cut and overlong UTF-8."""
    kinds = [
        None,
        b"",
        "grün 🙂".encode(),
        b"\xed\xa0\x80-\xed\xbf\xbf",
        b"\xed\xa0",
        b"\xf0\x9f\x98",
        b"\xc0\x80\xf5\x80\x80\x80",
        b"\xe0\x80\xaf\xf4\x90\x80\x80",
        bytes(range(128, 256)),
    ]
    headers = (("a", None), ("grün", b"x"), ("", b""))
    return [
        (
            first + index * step,
            NOW_MS - index,
            kinds[index % len(kinds)],
            kinds[index // len(kinds) % len(kinds)],
            headers[: index % 4],
        )
        for index in range(count)
    ]


@pytest.mark.parametrize(
    "options",
    [
        ["--print-data-log"],
        ["--deep-iteration"],
        ["--print-data-log", "--skip-record-metadata"],
        ["--print-data-log", "--max-bytes", "5000"],
        [],
    ],
)
def test_unusual_records_are_printed_alike(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, partition: Path, options: list[str]
) -> None:
    producer = BatchSettings(producer_id=5, producer_epoch=1, base_sequence=2**31 - 40)
    path = partition / f"{100:020d}.log"
    path.write_bytes(
        build_batch(strange_records(100, 81), BatchSettings(codec=Codec.ZSTD))
        + build_batch(strange_records(181, 81), producer)
        + build_batch(strange_records(1000, 20, step=3), producer)
        + build_batch(strange_records(1100, 5), BatchSettings(delete_horizon_ms=NOW_MS))
    )

    same(kctl, monkeypatch, path, *options)


def test_transaction_of_many_partitions_is_printed_alike(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = tmp_path / "__transaction_state-0"
    directory.mkdir()
    topics = [
        PartitionsSchema(topic=f"topic-{number}", partition_ids=list(range(number + 1)))
        for number in range(6)
    ]
    value = TransactionLogValue(producer_id=1, transaction_status=1, transaction_partitions=topics)
    key = b"\0\0" + encode(TransactionLogKey(transactional_id="t"), 0)
    records: list[RecordTuple] = [
        (0, NOW_MS, key, b"\0\0" + encode(value, 0), ()),
        (1, NOW_MS, key, None, ()),
    ]
    path = directory / f"{0:020d}.log"
    path.write_bytes(build_batch(records, BatchSettings()))

    same(kctl, monkeypatch, path, "--transaction-log-decoder")


def test_invalid_group_records_are_printed_alike(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    records: list[RecordTuple] = [
        (0, NOW_MS, b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x07", None, ()),
        (1, NOW_MS, b"\x00\x63", b"", ()),
        (2, NOW_MS, b"\x00", b"", ()),
        (3, NOW_MS, b"\x00\x02\x00\x01g", b"", ()),
    ]
    path = directory / f"{0:020d}.log"
    path.write_bytes(build_batch(records, BatchSettings()))

    same(kctl, monkeypatch, path, "--offsets-decoder")


def test_producer_with_markers_only_is_printed_alike(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, partition: Path
) -> None:
    path = partition / f"{50:020d}{SNAPSHOT}"
    entries = [
        SnapshotEntry(9, 1, -1, -1, 0, NOW_MS, 3, -1),
        SnapshotEntry(8, 0, 4, 30, 4, 5, -1, 26),
    ]
    path.write_bytes(encode_snapshot(entries))

    same(kctl, monkeypatch, path)


def test_gaps_in_many_segments_are_reported_in_the_same_order(
    kctl: Kctl, monkeypatch: pytest.MonkeyPatch, partition: Path
) -> None:
    for base_offset in range(0, 2000, 100):
        path = partition / f"{base_offset:020d}.log"
        path.write_bytes(build_batch(strange_records(base_offset, 5, step=3), BatchSettings()))

    same(kctl, monkeypatch, partition, "--deep-iteration")
