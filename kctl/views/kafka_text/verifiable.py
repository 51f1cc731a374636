"""The JSON lines of kafka-verifiable-producer and kafka-verifiable-consumer."""

import json
from collections.abc import Iterable, Mapping

from broker.model import TopicPartition
from kctl.cli.times import now_ms

Event = Mapping[str, object]


def event(name: str, **fields: object) -> str:
    """One line; the fields follow time and name."""
    line = {"timestamp": now_ms(), "name": name} | fields
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def text_of(data: bytes | None) -> str | None:
    """A key or value as the tools print it."""
    return None if data is None else data.decode(errors="replace")


def places(partitions: Iterable[TopicPartition]) -> list[Event]:
    """Partitions of an assignment."""
    return [{"topic": place.topic, "partition": place.partition} for place in partitions]


def counted(seen: Mapping[TopicPartition, tuple[int, int, int]]) -> list[Event]:
    """By partition: number of records, lowest and highest offset."""
    return [
        {
            "topic": place.topic,
            "partition": place.partition,
            "count": count,
            "minOffset": lowest,
            "maxOffset": highest,
        }
        for place, (count, lowest, highest) in seen.items()
    ]


def committed(offsets: Mapping[TopicPartition, int]) -> list[Event]:
    """Committed offsets by partition."""
    return [
        {"topic": place.topic, "partition": place.partition, "offset": offset}
        for place, offset in offsets.items()
    ]
