"""Names of files and directories as in Kafka."""

from pathlib import Path

import pytest

from broker.log.layout import (
    DELETE_DIR,
    FUTURE_DIR,
    LOG,
    STRAY_DIR,
    marked_dir_name,
    offset_file,
    parse_offset_file,
    parse_partition_dir,
)
from broker.model import TopicPartition


def test_offsets_have_twenty_digits() -> None:
    path = offset_file(Path("t-0"), 2**63 - 1, LOG, ".swap")
    assert str(path) == "t-0/09223372036854775807.log.swap"


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000000042.index", (42, ".index", "")),
        ("00000000000000000042.log.cleaned", (42, ".log", ".cleaned")),
        ("00000000000000000042.snapshot.deleted", (42, ".snapshot", ".deleted")),
        ("42.log", None),
        ("leader-epoch-checkpoint", None),
        ("00000000000000000042", None),
    ],
)
def test_file_names_are_parsed(name: str, parsed: tuple[int, str, str] | None) -> None:
    assert parse_offset_file(name) == parsed


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", ("orders", 0)),
        ("with-dash-12", ("with-dash", 12)),
        ("with.dot-1", ("with.dot", 1)),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", ("orders", 3)),
        ("with.dot-1.0123456789abcdef0123456789abcdef-future", ("with.dot", 1)),
        ("orders-3.x-stray", ("orders", 3)),
        ("ends-with-delete", None),
        ("orders", None),
        ("-0", None),
        ("orders-", None),
        ("orders-x", None),
        ("lost+found", None),
    ],
)
def test_directory_names_are_parsed(name: str, partition: tuple[str, int] | None) -> None:
    assert parse_partition_dir(name) == partition


@pytest.mark.parametrize("mark", [DELETE_DIR, FUTURE_DIR, STRAY_DIR])
def test_marked_names_are_unique_and_read_back(mark: str) -> None:
    partition = TopicPartition("orders", 7)
    names = {marked_dir_name(partition, mark) for _ in range(10)}
    assert len(names) == 10
    assert {parse_partition_dir(name) for name in names} == {partition}


def test_name_of_a_long_topic_stays_legal() -> None:
    name = marked_dir_name(TopicPartition("t" * 249, 123), DELETE_DIR)
    assert len(name) == 255
    assert parse_partition_dir(name) == ("t" * (255 - len("-123.") - 32 - len("-delete")), 123)
