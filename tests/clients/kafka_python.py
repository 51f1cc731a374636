"""kafka-python, version 3."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

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

with warnings.catch_warnings():  # it reads its schemas with a deprecated function
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.codec
    from kafka import (
        KafkaAdminClient,
        KafkaConsumer,
        KafkaProducer,
        OffsetAndMetadata,
        TopicPartition,
    )
    from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError


def has_codec(name: str) -> bool:
    return bool(getattr(kafka.codec, f"has_{name}")())


class KafkaPython:
    """Codecs other than gzip need the packages python-snappy, lz4 and zstandard."""

    name: ClassVar = "kafka-python"
    codecs: ClassVar[Sequence[str]] = tuple(codec for codec in CODECS if has_codec(codec))
    abilities: ClassVar = frozenset(
        {"produce", "timestamps", "consume", "groups", "cooperative", "admin", "delete groups"}
    )

    def produce(
        self, servers: str, topic: str, messages: Sequence[Message], how: Sending = PLAINLY
    ) -> list[int]:
        """See Client."""
        with closing(
            KafkaProducer(
                bootstrap_servers=servers,
                acks=how.acks,
                compression_type=how.compression,
                enable_idempotence=how.is_idempotent,
                linger_ms=how.linger_ms,
                batch_size=how.batch_bytes,
                max_request_size=10_000_000,
            )
        ) as producer:
            sent = [
                producer.send(
                    topic,
                    message.value,
                    message.key,
                    list(message.headers),
                    message.partition,
                    message.timestamp_ms,
                )
                for message in messages
            ]
            producer.flush(TIMEOUT_S)
            with refusals():
                return [future.get(TIMEOUT_S).offset if how.acks else -1 for future in sent]

    def consumer(self, servers: str, how: Joining = ALONE) -> "KafkaPythonConsumer":
        """See Client."""
        return KafkaPythonConsumer(servers, how)

    def admin(self, servers: str) -> "KafkaPythonAdmin":
        """See Client."""
        return KafkaPythonAdmin(servers)


@contextmanager
def refusals() -> Iterator[None]:
    """Its errors as Refused."""
    try:
        yield
    except KafkaError as error:
        raise Refused(error_name(type(error).__name__)) from error


class KafkaPythonConsumer:
    """See ClientConsumer."""

    def __init__(self, servers: str, how: Joining) -> None:
        strategy = CooperativeStickyAssignor if how.is_cooperative else RangePartitionAssignor
        self._client: Any = KafkaConsumer(
            bootstrap_servers=servers,
            group_id=how.group_id,
            group_instance_id=how.group_instance_id,
            partition_assignment_strategy=[strategy],
            isolation_level=how.isolation_level,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            fetch_max_wait_ms=50,
        )

    def subscribe(self, topic: str) -> None:
        """See ClientConsumer."""
        self._client.subscribe([topic])

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        self._client.assign([TopicPartition(topic, index) for index in positions])
        for index, offset in positions.items():
            self._client.seek(TopicPartition(topic, index), offset)

    def poll(self, timeout_s: float = 0.05) -> list[Message]:
        """See ClientConsumer; a poll that is too short may not complete a rebalance."""
        polled = self._client.poll(max(timeout_s, 0.5) * 1000)
        return [_received(raw) for batch in polled.values() for raw in batch]

    def partitions(self) -> set[int]:
        """See ClientConsumer."""
        return {each.partition for each in self._client.assignment()}

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        self._client.commit(_offsets(topic, offsets))

    def commit_async(self, topic: str, offsets: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        self._client.commit_async(_offsets(topic, offsets))

    def committed(self, topic: str, partition: int) -> int | None:
        """See ClientConsumer."""
        found: int | None = self._client.committed(TopicPartition(topic, partition))
        return found

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """See ClientConsumer."""
        asked = TopicPartition(topic, partition)
        found = self._client.offsets_for_times({asked: timestamp_ms})[asked]
        return None if found is None else int(found.offset)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See ClientConsumer."""
        asked = TopicPartition(topic, partition)
        first = self._client.beginning_offsets([asked])[asked]
        return first, self._client.end_offsets([asked])[asked]

    def close(self) -> None:
        """See ClientConsumer."""
        self._client.close()


def _offsets(topic: str, offsets: Mapping[int, int]) -> dict[Any, Any]:
    return {
        TopicPartition(topic, index): OffsetAndMetadata(offset, "", -1)
        for index, offset in offsets.items()
    }


def _received(raw: Any) -> Message:
    return Message(raw.value, raw.key, raw.partition, tuple(raw.headers), raw.timestamp, raw.offset)


class KafkaPythonAdmin:
    """See ClientAdmin."""

    def __init__(self, servers: str) -> None:
        self._client: Any = KafkaAdminClient(bootstrap_servers=servers)

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """See ClientAdmin."""
        wanted = {
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": dict(configs),
        }
        with refusals():
            self._client.create_topics({name: wanted})

    def delete_topic(self, name: str) -> None:
        """See ClientAdmin."""
        with refusals():
            self._client.delete_topics([name])

    def add_partitions(self, name: str, total: int) -> None:
        """See ClientAdmin."""
        with refusals():
            self._client.create_partitions({name: total})

    def topics(self) -> dict[str, int]:
        """See ClientAdmin."""
        return {topic["name"]: len(topic["partitions"]) for topic in self._client.describe_topics()}

    def topic_config(self, name: str, key: str) -> str | None:
        """See ClientAdmin."""
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        answer = self._client.describe_configs([resource], config_filter=ConfigFilterType.ALL)
        value: str | None = answer["topic"][name][key]["value"]
        return value

    def set_topic_config(self, name: str, key: str, value: str) -> None:
        """See ClientAdmin."""
        resource = ConfigResource(ConfigResourceType.TOPIC, name, {key: value})
        with refusals():
            self._client.alter_configs([resource])

    def groups(self) -> set[str]:
        """See ClientAdmin."""
        return {group["group_id"] for group in self._client.list_groups()}

    def group_state(self, group_id: str) -> str:
        """See ClientAdmin."""
        return str(self._client.describe_groups([group_id])[group_id]["group_state"]).lower()

    def delete_group(self, group_id: str) -> None:
        """See ClientAdmin."""
        outcome = self._client.delete_groups([group_id])[group_id]
        if outcome != "OK":
            raise Refused(error_name(outcome))

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """See ClientAdmin."""
        with refusals():
            self._client.delete_records({TopicPartition(topic, partition): before})

    def close(self) -> None:
        """See ClientAdmin."""
        self._client.close()
