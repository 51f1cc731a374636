"""confluent-kafka: librdkafka."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as RawMessage
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from tests.clients.face import (
    ALONE,
    CODECS,
    PLAINLY,
    TIMEOUT_S,
    Joining,
    Message,
    Refused,
    Sending,
    error_name,
)
from tests.support.consumed import headers_of, offset_of, partition_of

Delivered = int | KafkaError | None
"""The offset of a record that was sent, or its error; None if it was not acknowledged."""


class Librdkafka:
    """Knows every API."""

    name: ClassVar = "librdkafka"
    codecs: ClassVar[Sequence[str]] = CODECS
    abilities: ClassVar = frozenset(
        {"produce", "timestamps", "consume", "groups", "cooperative", "admin", "delete groups"}
    )

    def produce(
        self, servers: str, topic: str, messages: Sequence[Message], how: Sending = PLAINLY
    ) -> list[int]:
        """See Client."""
        producer = Producer(
            {
                "bootstrap.servers": servers,
                "acks": how.acks,
                "compression.type": how.compression or "none",
                "enable.idempotence": how.is_idempotent,
                "linger.ms": how.linger_ms,
                "batch.size": how.batch_bytes,
                "message.max.bytes": 10_000_000,
                "log_level": 0,
            }
        )
        delivered: dict[int, Delivered] = {}
        for number, message in enumerate(messages):
            producer.produce(
                topic,
                message.value,
                message.key,
                message.partition,
                on_delivery=partial(_keep, delivered, number),
                timestamp=message.timestamp_ms or 0,
                headers=list(message.headers),
            )
        assert producer.flush(TIMEOUT_S) == 0
        return [_offset_of(delivered[number], how.acks) for number in range(len(messages))]

    def consumer(self, servers: str, how: Joining = ALONE) -> "LibrdkafkaConsumer":
        """See Client."""
        return LibrdkafkaConsumer(servers, how)

    def admin(self, servers: str) -> "LibrdkafkaAdmin":
        """See Client."""
        return LibrdkafkaAdmin(servers)


def _keep(
    delivered: dict[int, Delivered], number: int, error: KafkaError | None, raw: RawMessage
) -> None:
    delivered[number] = error or raw.offset()


def _offset_of(delivered: Delivered, acks: int) -> int:
    if isinstance(delivered, KafkaError):
        raise Refused(error_name(delivered.name()))
    if not acks:
        return -1
    assert delivered is not None
    return delivered


class LibrdkafkaConsumer:
    """See ClientConsumer."""

    def __init__(self, servers: str, how: Joining) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "group.id": how.group_id or "unknown",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": how.isolation_level,
            "heartbeat.interval.ms": 100,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
        if how.group_instance_id:
            settings["group.instance.id"] = how.group_instance_id
        if how.is_cooperative:
            settings["partition.assignment.strategy"] = "cooperative-sticky"
        self._client = Consumer(settings)

    def subscribe(self, topic: str) -> None:
        """See ClientConsumer."""
        self._client.subscribe([topic])

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        self._client.assign(_partitions(topic, positions))

    def poll(self, timeout_s: float = 0.05) -> list[Message]:
        """See ClientConsumer."""
        return [_received(raw) for raw in self._client.consume(500, timeout_s) if not raw.error()]

    def partitions(self) -> set[int]:
        """See ClientConsumer."""
        return {each.partition for each in self._client.assignment()}

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        self._client.commit(offsets=_partitions(topic, offsets), asynchronous=False)

    def commit_async(self, topic: str, offsets: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        self._client.commit(offsets=_partitions(topic, offsets), asynchronous=True)

    def committed(self, topic: str, partition: int) -> int | None:
        """See ClientConsumer."""
        (found,) = self._client.committed([TopicPartition(topic, partition)], TIMEOUT_S)
        return found.offset if found.offset >= 0 else None

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """See ClientConsumer."""
        asked = [TopicPartition(topic, partition, timestamp_ms)]
        (found,) = self._client.offsets_for_times(asked, TIMEOUT_S)
        return found.offset if found.offset >= 0 else None

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See ClientConsumer."""
        low, high = self._client.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
        return low, high

    def close(self) -> None:
        """See ClientConsumer."""
        self._client.close()


def _partitions(topic: str, offsets: Mapping[int, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, index, offset) for index, offset in offsets.items()]


def _received(raw: RawMessage) -> Message:
    headers: list[tuple[str, bytes]] = []
    for name, value in headers_of(raw):
        assert value is not None, name
        headers.append((name, value))
    return Message(
        raw.value(),
        raw.key(),
        partition_of(raw),
        tuple(headers),
        raw.timestamp()[1],
        offset_of(raw),
    )


class LibrdkafkaAdmin:
    """See ClientAdmin."""

    def __init__(self, servers: str) -> None:
        self._client = AdminClient({"bootstrap.servers": servers, "log_level": 0})

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """See ClientAdmin."""
        topic = NewTopic(name, partitions, 1, config=dict(configs))
        _result(self._client.create_topics([topic]))

    def delete_topic(self, name: str) -> None:
        """See ClientAdmin."""
        _result(self._client.delete_topics([name]))

    def add_partitions(self, name: str, total: int) -> None:
        """See ClientAdmin."""
        _result(self._client.create_partitions([NewPartitions(name, total)]))

    def topics(self) -> dict[str, int]:
        """See ClientAdmin."""
        listed = self._client.list_topics(timeout=TIMEOUT_S).topics
        return {name: len(topic.partitions) for name, topic in listed.items()}

    def topic_config(self, name: str, key: str) -> str | None:
        """See ClientAdmin."""
        entries = _result(
            self._client.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name)])
        )
        value: str | None = entries[key].value
        return value

    def set_topic_config(self, name: str, key: str, value: str) -> None:
        """See ClientAdmin."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
        _result(self._client.incremental_alter_configs([resource]))

    def groups(self) -> set[str]:
        """See ClientAdmin."""
        return {
            group.group_id for group in self._client.list_consumer_groups().result(TIMEOUT_S).valid
        }

    def group_state(self, group_id: str) -> str:
        """See ClientAdmin."""
        described = _result(self._client.describe_consumer_groups([group_id]))
        return str(described.state.name).lower()

    def delete_group(self, group_id: str) -> None:
        """See ClientAdmin."""
        _result(self._client.delete_consumer_groups([group_id]))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """See ClientAdmin."""
        _result(self._client.delete_records([TopicPartition(topic, partition, before)]))

    def close(self) -> None:
        """See ClientAdmin."""


def _result(answers: Mapping[Any, Any]) -> Any:
    (answer,) = answers.values()
    try:
        return answer.result(TIMEOUT_S)
    except KafkaException as error:
        raise Refused(error_name(error.args[0].name())) from error
