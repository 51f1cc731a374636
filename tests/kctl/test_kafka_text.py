"""`--format kafka` equals the recorded output of Kafka's tools."""

import json
import re

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition, Uuid
from kctl.model.configs import Config
from kctl.model.log_dirs import LogDir, Replica
from kctl.model.offsets import Deletion
from kctl.model.topics import Partition, Topic
from kctl.views.kafka_text.java_maps import hash_map_order
from kctl.views.kafka_text.records import deletion_lines, log_dir_lines, offset_lines
from kctl.views.kafka_text.topics import description_lines, override_lines, partition_line
from tests.support.golden_tools import golden_tool


def fields(line: str) -> dict[str, str]:
    """`Topic: orders⇥Partition: 0` as a mapping."""
    return dict(re.split(": ?", part, maxsplit=1) for part in line.strip().split("\t"))


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def config(name: str, value: str, source: str) -> Config:
    return Config(name, value, source, False, False, "string", (), None)


def golden_topics(
    lines: list[str], partition_lines: list[str]
) -> tuple[list[Topic], dict[str, list[Config]]]:
    """The topics that a description is about, sorted by name, with what their settings are."""
    topics, configs = [], {}
    for line in lines:
        said = fields(line)
        mine = [fields(p) for p in partition_lines if fields(p)["Topic"] == said["Topic"]]
        partitions = [
            Partition(
                int(p["Partition"]), int(p["Leader"]), 0, numbers(p["Replicas"]), numbers(p["Isr"])
            )
            for p in mine
        ]
        topic_id = Uuid.parse(said["TopicId"])
        topics.append(Topic(said["Topic"], topic_id, False, tuple(partitions)))
        own = [pair.split("=") for pair in said["Configs"].split(",")]
        configs[said["Topic"]] = [config(name, value, "STATIC") for name, value in own]
        configs[said["Topic"]].append(config("segment.bytes", "1", "DEFAULT_CONFIG"))
    return sorted(topics, key=lambda topic: topic.name), configs


def test_description_equals_kafka_topics() -> None:
    golden = golden_tool("10-").lines
    heads = [line for line in golden if not line.startswith("\t")]
    topics, configs = golden_topics(heads, [line for line in golden if line.startswith("\t")])
    assert list(description_lines(topics, configs)) == golden


def test_overrides_equal_kafka_topics() -> None:
    golden = golden_tool("15-").lines
    described = [line for line in golden_tool("10-").lines if line.startswith("\t")]
    # Partitions were added to orders between the two runs.
    more = [described[-1].replace("Partition: 3", f"Partition: {index}") for index in (4, 5)]
    topics, configs = golden_topics(golden, described + more)
    plain = Topic("plain", None, False, topics[0].partitions)
    configs["plain"] = [config("segment.bytes", "1", "DEFAULT_CONFIG")]
    # One topic more is another order of the map, so only the lines are compared.
    assert sorted(override_lines([*topics, plain], configs)) == golden


def test_reassigned_partition_lists_added_and_removed_replicas() -> None:
    moving = Partition(0, None, 0, (1, 2, 3), (1,), adding=(3,), removing=(1,))
    topic = Topic("t", None, False, (moving,))
    assert partition_line(topic, moving) == (
        "\tTopic: t\tPartition: 0\tLeader: none\tReplicas: 1,2,3\tIsr: 1"
        "\tAdding Replicas: 3\tRemoving Replicas: 1\tElr: N/A\tLastKnownElr: N/A"
    )
    assert topic.replication_factor == 2


def test_offsets_output_equals_kafka_get_offsets() -> None:
    golden = golden_tool("17-").lines
    offsets = {}
    for line in reversed(golden):
        topic, partition, offset = line.split(":")
        offsets[TopicPartition(topic, int(partition))] = int(offset)
    assert list(offset_lines(offsets)) == golden


def test_offsets_are_sorted_as_text() -> None:
    offsets = {TopicPartition("t", index): index for index in (2, 10)}
    assert list(offset_lines(offsets)) == ["t:10:10", "t:2:2"]


def replica(part: dict[str, object]) -> Replica:
    topic, number = str(part["partition"]).rsplit("-", 1)
    size, lag = int(str(part["size"])), int(str(part["offsetLag"]))
    return Replica(TopicPartition(topic, int(number)), size, lag, bool(part["isFuture"]))


def test_log_dirs_output_equals_kafka_log_dirs() -> None:
    golden = golden_tool("50-").lines
    log_dirs = [
        LogDir(
            broker["broker"],
            log_dir["logDir"],
            ErrorCode.NONE,
            None,
            None,
            tuple(replica(part) for part in reversed(log_dir["partitions"])),
        )
        for broker in json.loads(golden[2])["brokers"]
        for log_dir in reversed(broker["logDirs"])
    ]
    printed = list(log_dir_lines(log_dirs))
    assert printed[:2] == golden[:2]
    # The names of the directories were shortened afterwards, so their order tells nothing.
    assert by_dir(printed[2]) == by_dir(golden[2])


def by_dir(line: str) -> dict[tuple[int, str], str]:
    """The text about each directory, key by key and partition by partition as it was printed."""
    return {
        (broker["broker"], log_dir["logDir"]): json.dumps(log_dir)
        for broker in json.loads(line)["brokers"]
        for log_dir in broker["logDirs"]
    }


def test_refused_deletion_equals_kafka_delete_records() -> None:
    refused = Deletion(TopicPartition("orders", 2), -1, ErrorCode.POLICY_VIOLATION)
    assert list(deletion_lines([refused])) == golden_tool("51-").lines


def test_successful_deletion_reports_the_low_watermark() -> None:
    done = Deletion(TopicPartition("orders", 2), 7, ErrorCode.NONE)
    assert list(deletion_lines([done]))[-1] == "partition: orders-2\tlow_watermark: 7"


@pytest.mark.parametrize(("capacity", "order"), [(16, [16, 1, 17, 2]), (32, [1, 2, 16, 17])])
def test_map_order_is_by_slot_and_then_by_arrival(capacity: int, order: list[int]) -> None:
    assert hash_map_order([16, 1, 17, 2], int, capacity) == order


def test_map_that_fills_up_doubles_its_slots() -> None:
    assert hash_map_order([*range(12, 0, -1), 17], int)[:2] == [1, 2]
    assert hash_map_order([17, 1, 2], int) == [17, 1, 2]
