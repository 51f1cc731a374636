"""The small text files: errors name the file, the line and the problem."""

from pathlib import Path

import pytest

from broker.log.checkpoints import (
    CorruptCheckpoint,
    MetaProperties,
    read_epochs,
    read_meta_properties,
    read_offsets,
    read_partition_metadata,
    write_meta_properties,
    write_offsets,
)
from broker.model import TopicPartition
from tests.log.support import BreakingDisk, UnflushedDisk


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1\n0\n", "line 1: expected version 0, found '1'"),
        ("0\n2\na 0 5\n", "line 2: expected the number of entries, 1, found '2'"),
        ("0\nx\na 0 5\n", "line 2: expected the number of entries"),
        ("0\n1\na 0\n", "line 3: expected `topic partition offset`, found 'a 0'"),
        ("0\n2\na 0 5\na x 5\n", "line 4: expected `topic partition offset`"),
    ],
)
def test_malformed_offsets_name_file_line_and_problem(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with pytest.raises(CorruptCheckpoint, match=problem) as found:
        read_offsets(path)
    assert str(path) in str(found.value)


def test_checkpoint_that_is_not_text_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"0\n1\n\xff\xfe 0 1\n")
    with pytest.raises(CorruptCheckpoint, match="expected text"):
        read_offsets(path)


def test_malformed_epochs_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\n1\n")
    with pytest.raises(CorruptCheckpoint, match="line 3: expected `epoch offset`"):
        read_epochs(path)


@pytest.mark.parametrize("text", ["", "0\n"])
def test_empty_file_has_no_entries(text: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    assert read_offsets(path) == {}


def test_missing_files_read_as_nothing(tmp_path: Path) -> None:
    assert read_offsets(tmp_path / "none") == {}
    assert read_epochs(tmp_path / "none") == []
    assert read_partition_metadata(tmp_path) is None
    assert read_meta_properties(tmp_path) is None


@pytest.mark.parametrize("text", ["version: 1\ntopic_id: x", "version: 0\ntopic_id: x", "x"])
def test_malformed_partition_metadata_is_corrupt(text: str, tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    with pytest.raises(CorruptCheckpoint, match=r"partition\.metadata"):
        read_partition_metadata(tmp_path)


def test_meta_properties_keep_what_newer_versions_added(tmp_path: Path) -> None:
    properties = MetaProperties(4, "abc", 1, (("directory.id", "xyz"),))
    write_meta_properties(tmp_path, properties, 0, UnflushedDisk())
    assert read_meta_properties(tmp_path) == properties


def test_meta_properties_without_version_are_corrupt(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("broker.id=1\n")
    with pytest.raises(CorruptCheckpoint, match="version"):
        read_meta_properties(tmp_path)


@pytest.mark.parametrize("step", range(1, 5))
def test_failure_at_any_step_leaves_the_old_checkpoint_or_the_new(
    step: int, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint"
    old, new = {TopicPartition("a", 0): 1}, {TopicPartition("a", 0): 2, TopicPartition("b", 1): 3}
    write_offsets(path, old, UnflushedDisk())
    with pytest.raises(OSError, match="Input/output error"):
        write_offsets(path, new, BreakingDisk(step, torn_bytes=5))
    assert read_offsets(path) in (old, new)


def test_partition_metadata_that_a_crash_left_empty_names_no_topic(tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").touch()
    assert read_partition_metadata(tmp_path) is None
