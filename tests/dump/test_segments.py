"""`kctl dump-log segments` and `locate`, on our broker's and on Kafka's files."""

import itertools
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.log.layout import DELETED
from kctl.docs.tree import walk_commands
from kctl.dump.segments.listing import log_files, read_segments
from tests.support.broker import RunningBroker, running_broker
from tests.support.cluster import wait_until
from tests.support.kctl import KctlResult, run_kctl
from tests.support.real_kafka import RealKafka

RECORDS = 400
EXAMPLES = [
    example
    for command in walk_commands()
    if command.path[1:] in [("dump-log", "segments"), ("dump-log", "locate")]
    for example in command.examples
]


@pytest.fixture(scope="module")
def small_segments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with the topic `orders`: 400 records in segments of about 2 KB."""
    with running_broker(
        tmp_path_factory.mktemp("broker"), log_retention_check_interval_ms=200
    ) as broker:
        fill(broker.bootstrap_servers, "orders")
        yield broker


def fill(servers: str, topic: str) -> None:
    configs = ("--config", "segment.bytes=2048", "--config", "index.interval.bytes=256")
    assert run_kctl("-b", servers, "topics", "create", topic, *configs).exit_code == 0
    for first in range(0, RECORDS, 100):
        lines = "".join(f"k{number}:value {number}\n" for number in range(first, first + 100))
        # One record per batch, so that there are several index entries per segment.
        args = ("produce", topic, "-K", ":", "-X", "batch.num.messages=1")
        assert run_kctl("-b", servers, *args, stdin=lines).exit_code == 0


def ok(*args: str) -> Any:
    result = run_kctl(*args, "-o", "json")
    assert result.exit_code == 0, result.stderr
    return result.json


def test_segments_cover_the_log_without_gaps(small_segments: RunningBroker) -> None:
    rows = ok("dump-log", "segments", str(small_segments.log_dir / "orders-0"))
    assert len(rows) > 5
    assert rows[0]["base_offset"] == 0 and rows[-1]["last_offset"] == RECORDS - 1
    for one, following in itertools.pairwise(rows):
        assert one["last_offset"] + 1 == following["base_offset"]
    assert [row["active"] for row in rows] == [False] * (len(rows) - 1) + [True]
    assert all(row["deleted_from"] is None for row in rows)
    assert all(row["size_bytes"] <= 2048 for row in rows)


def test_every_offset_is_located_in_its_batch(small_segments: RunningBroker) -> None:
    directory = str(small_segments.log_dir / "orders-0")
    shown = ok("dump-log", "show", directory)
    batches = {row["base_offset"]: row for row in shown if row["type"] == "batch"}
    for offset in (0, 1, 57, 123, 300, RECORDS - 1):
        steps = {row["step"]: row for row in ok("dump-log", "locate", directory, str(offset))}
        assert list(steps) == ["segment", "index", "scan", "batch", "record"]
        assert steps["segment"]["offset"] <= offset
        assert (steps["index"]["offset"] or 0) <= offset
        assert steps["batch"]["position"] == batches[offset]["position"]
        assert steps["batch"]["position"] >= steps["index"]["position"]
        assert steps["record"]["offset"] == offset
        assert f"'k{offset}'" in steps["record"]["detail"]


def test_index_shortens_the_scan(small_segments: RunningBroker) -> None:
    directory = str(small_segments.log_dir / "orders-0")
    steps = {row["step"]: row for row in ok("dump-log", "locate", directory, "300")}
    skipped = int(steps["scan"]["detail"].split()[0])
    assert steps["index"]["position"] > 0
    assert skipped < 300 - steps["segment"]["offset"]


def test_offset_on_the_wire_names_leader_and_batch(small_segments: RunningBroker) -> None:
    servers = small_segments.bootstrap_servers
    leader, batch, record = ok("-b", servers, "dump-log", "locate", "orders:0", "300")
    assert f"high watermark {RECORDS}" in leader["detail"]
    assert (batch["offset"], batch["position"]) == (300, None)
    on_disk = ok("dump-log", "locate", str(small_segments.log_dir / "orders-0"), "300")
    assert (record["offset"], record["detail"]) == (300, on_disk[-1]["detail"])


@pytest.mark.parametrize("place", ["orders", "orders:0"])
def test_topic_on_the_wire_is_one_row_per_partition(
    small_segments: RunningBroker, place: str
) -> None:
    servers = small_segments.bootstrap_servers
    (row,) = ok("-b", servers, "dump-log", "segments", place)
    on_disk = ok("-b", servers, "dump-log", "segments", str(small_segments.log_dir / "orders-0"))
    assert (row["base_offset"], row["last_offset"]) == (0, RECORDS - 1)
    assert row["size_bytes"] == sum(one["size_bytes"] for one in on_disk)
    assert row["first_time"] == on_disk[0]["first_time"]
    same = ("last_time", "deleted_from", "reason")
    assert [row[name] for name in same] == [on_disk[-1][name] for name in same]
    assert (row["file"], row["active"], row["index_bytes"]) == (None, None, None)


def test_predicted_segments_are_deleted_and_no_others(small_segments: RunningBroker) -> None:
    servers = small_segments.bootstrap_servers
    fill(servers, "short")
    directory = str(small_segments.log_dir / "short-0")
    before = ok("dump-log", "segments", directory, "--retention-bytes", "5000")
    due = [row for row in before if row["deleted_from"]]
    assert 0 < len(due) < len(before)
    assert {(row["deleted_from"], row["reason"]) for row in due} == {("now", "retention.bytes")}
    alter = ("topics", "alter", "short", "--config", "retention.bytes=5000", "--yes")
    assert run_kctl("-b", servers, *alter).exit_code == 0
    kept = [row["base_offset"] for row in before if not row["deleted_from"]]

    def bases() -> list[int]:
        return [row["base_offset"] for row in ok("dump-log", "segments", directory)]

    wait_until(lambda: bases() == kept, "exactly the predicted segments are deleted")
    # From the cluster's settings: retention.ms of a week, and nothing beyond retention.bytes.
    now = ok("-b", servers, "dump-log", "segments", directory)
    assert {row["reason"] for row in now} == {"retention.ms"}
    assert all(row["deleted_from"] > row["last_time"] for row in now)


def test_segments_that_are_deleted_while_they_are_listed_are_left_out(
    small_segments: RunningBroker, tmp_path: Path
) -> None:
    copy = tmp_path / "orders-0"
    shutil.copytree(small_segments.log_dir / "orders-0", copy)
    ((place, files),) = log_files(copy).items()
    for file in files[:2]:
        file.path.rename(f"{file.path}{DELETED}")  # as the broker does, after the listing
    assert [one.path for one in read_segments(place, files)] == [one.path for one in files[2:]]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("segments /nonexistent", 1, "no such directory"),
        ("segments {data} --retention soon", 2, "is not a duration"),
        ("segments {data} --retention-bytes many", 2, "expected a number of bytes"),
        ("segments orders:9", 1, "orders has no partition 9"),
        ("segments orders:x", 2, "is not TOPIC:PARTITION"),
        ("segments nope", 1, "no such topic"),
        ("locate {data}/orders-0 400", 1, "beyond the end of the log"),
        ("locate {data}/orders-0 -- -1", 2, "-1"),
        ("locate {data} 1", 2, "several partitions"),
        ("locate orders:9 1", 1, "orders has no partition 9"),
        ("locate nope:0 1", 1, "no such topic"),
        ("locate orders:0 400", 1, "orders-0 has no offset 400"),
        ("locate orders:0 4000", 1, "orders-0 has no offset 4000"),
    ],
)
def test_bad_input_is_one_clear_error(
    small_segments: RunningBroker, words: str, status: int, message: str
) -> None:
    servers = small_segments.bootstrap_servers
    run_kctl("-b", servers, "topics", "create", "other")
    arguments = words.format(data=small_segments.log_dir).split()
    result: KctlResult = run_kctl("-b", servers, "dump-log", *arguments)
    assert (result.exit_code, message in result.stderr) == (status, True), result.stderr


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(small_segments: RunningBroker, example: str) -> None:
    placed = example.replace("localhost:9092", small_segments.bootstrap_servers)
    words = shlex.split(placed.replace("/var/lib/kafka", str(small_segments.log_dir)))
    result = run_kctl(*words[1:])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.output


@pytest.mark.kafka
@pytest.mark.timeout(200)
def test_located_batches_are_where_kafkas_tool_finds_them(real_kafka: RealKafka) -> None:
    fill(real_kafka.bootstrap_servers, "located")
    directory = real_kafka.log_dir(1) / "located-0"
    rows = ok("dump-log", "segments", str(directory))
    assert rows[-1]["last_offset"] == RECORDS - 1
    for row in rows[:3]:
        path = Path(row["file"])
        dumped = real_kafka.tool("kafka.tools.DumpLogSegments", "--files", str(path)).stdout
        found = re.findall(r"^baseOffset: (\d+) .*? position: (\d+) ", dumped, re.MULTILINE)
        assert found
        for base, position in found[:: max(1, len(found) // 4)]:
            steps = ok("dump-log", "locate", str(directory), base)
            (batch,) = (step for step in steps if step["step"] == "batch")
            assert (batch["file"], batch["position"]) == (path.name, int(position))
    servers = real_kafka.bootstrap_servers
    wire = ok("-b", servers, "dump-log", "locate", "located:0", "300")
    assert wire[-1]["offset"] == 300
