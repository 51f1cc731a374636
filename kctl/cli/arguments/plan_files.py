"""Kafka's JSON files of reassignments, elections and topics to move.

    {"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}

Error messages are those of Kafka's own tool, so that they can be searched for.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from broker.model import TopicPartition
from kctl.cli.arguments.files import BAD_JSON, json_reason
from kctl.cli.errors import CliError
from kctl.model.assignments import Assignment, ReassignmentFile, ReplicaPlace

ANY_LOG_DIR = "any"
REASSIGNMENT_HINT = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
TOPICS_HINT = '{"version":1,"topics":[{"topic":"orders"}]}'
ELECTION_HINT = '{"partitions":[{"topic":"orders","partition":0}]}'


def reassignment_json(
    assignment: Assignment, log_dirs: Mapping[ReplicaPlace, str] | None = None
) -> str:
    """The JSON of an assignment as Kafka's tool writes it: one line, sorted by partition."""
    places = log_dirs or {}
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(replicas),
            "log_dirs": [places.get((partition, broker), ANY_LOG_DIR) for broker in replicas],
        }
        for partition, replicas in sorted(assignment.items())
    ]
    return _compact({"version": 1, "partitions": partitions})


def parse_reassignment(text: str, source: str) -> ReassignmentFile:
    """Parse a plan file; CliError if it is malformed or inconsistent."""
    entries = [_reassigned(entry) for entry in _entries(text, source, "partitions")]
    _require_sound([(partition, replicas) for partition, replicas, _ in entries])
    log_dirs = {
        (partition, broker): log_dir
        for partition, replicas, dirs in entries
        for broker, log_dir in zip(replicas, dirs, strict=True)
        if log_dir != ANY_LOG_DIR
    }
    return ReassignmentFile({tp: tuple(replicas) for tp, replicas, _ in entries}, log_dirs)


def parse_topics(text: str, source: str) -> list[str]:
    """Parse the names in a file of topics to move."""
    hint = TOPICS_HINT
    names = [
        str(_field(entry, "topic", source, hint)) for entry in _entries(text, source, "topics")
    ]
    if twice := _repeated(names):
        raise CliError(
            f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]", hint
        )
    return names


def parse_elections(text: str, source: str) -> list[TopicPartition]:
    """Parse the partitions in a file of elections."""
    hint = ELECTION_HINT
    found = [_elected(entry, source) for entry in _entries(text, source, "partitions")]
    if twice := _repeated(map(str, found)):
        raise CliError(
            f"Replica election data contains duplicate partitions: [{', '.join(twice)}]", hint
        )
    return found


def _elected(entry: Any, source: str) -> TopicPartition:
    topic = str(_field(entry, "topic", source, ELECTION_HINT))
    number = _field(entry, "partition", source, ELECTION_HINT)
    try:
        return TopicPartition(topic, int(number))
    except (ValueError, TypeError, OverflowError) as error:
        message = f"{source}: {number!r} is not a partition number"
        raise CliError(message, ELECTION_HINT) from error


def _entries(text: str, source: str, key: str) -> list[Any]:
    hint = TOPICS_HINT if key == "topics" else REASSIGNMENT_HINT
    try:
        document = json.loads(text)
        version = int(document.get("version", 1))
        entries = document.get(key, [])
    except BAD_JSON as error:
        raise CliError(
            f"{source} is not one of Kafka's JSON files: {json_reason(error)}", hint
        ) from error
    if version != 1:
        raise CliError(f"Not supported version field value {version}", hint)
    if not isinstance(entries, list):
        raise CliError(f"{source}: {key!r} is not a list", hint)
    return entries


def _field(entry: Any, key: str, source: str, hint: str) -> Any:
    try:
        return entry[key]
    except (KeyError, TypeError) as error:
        raise CliError(f"{source}: an entry lacks {key!r}", hint) from error


def _reassigned(entry: Any) -> tuple[TopicPartition, list[int], list[str]]:
    try:
        partition = TopicPartition(str(entry["topic"]), int(entry["partition"]))
        replicas = [int(broker) for broker in entry["replicas"]]
        log_dirs = [str(d) for d in entry.get("log_dirs", [ANY_LOG_DIR] * len(replicas))]
    except BAD_JSON as error:
        message = f"invalid entry in the file: {json_reason(error)}"
        raise CliError(message, REASSIGNMENT_HINT) from error
    if len(replicas) != len(log_dirs):
        raise CliError(
            f"Size of replicas list {replicas} is different from size of log dirs list"
            f" [{', '.join(log_dirs)}] for partition {partition}",
            "specify a directory for every replica, or 'any'",
        )
    return partition, replicas, log_dirs


def _require_sound(entries: list[tuple[TopicPartition, list[int]]]) -> None:
    hint = REASSIGNMENT_HINT
    if not entries:
        raise CliError("Partition reassignment list cannot be empty", hint)
    if any(not replicas for _, replicas in entries):
        raise CliError("Partition replica list cannot be empty", hint)
    if twice := _repeated(str(partition) for partition, _ in entries):
        raise CliError(
            f"Partition reassignment contains duplicate topic partitions: {','.join(twice)}", hint
        )
    doubled = [
        f"{partition} contains multiple entries for {','.join(again)}"
        for partition, replicas in entries
        if (again := _repeated(map(str, replicas)))
    ]
    if doubled:
        raise CliError(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(doubled)}", hint
        )


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
