"""aiokafka, on an event loop in a thread of its own, so that its heartbeats go on."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

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

T = TypeVar("T")


class LoopThread:
    """An event loop that runs until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)

    def close(self) -> None:
        """Stop the loop; the thread ends."""
        self.run(_turns())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _turns() -> None:
    """Closed connections release their sockets in later iterations of the loop."""
    for _ in range(3):
        await asyncio.sleep(0)


class AioKafka:
    """Its admin client cannot delete groups; its consumers have no cooperative rebalancing."""

    name: ClassVar = "aiokafka"
    codecs: ClassVar[Sequence[str]] = CODECS
    abilities: ClassVar = frozenset({"produce", "timestamps", "consume", "groups", "admin"})

    def produce(
        self, servers: str, topic: str, messages: Sequence[Message], how: Sending = PLAINLY
    ) -> list[int]:
        """See Client."""
        with refusals():
            return asyncio.run(_produce(servers, topic, messages, how))

    def consumer(self, servers: str, how: Joining = ALONE) -> "AioKafkaConsumer":
        """See Client."""
        return AioKafkaConsumer(servers, how)

    def admin(self, servers: str) -> "AioKafkaAdmin":
        """See Client."""
        return AioKafkaAdmin(servers)


async def _produce(
    servers: str, topic: str, messages: Sequence[Message], how: Sending
) -> list[int]:
    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        acks=how.acks,
        compression_type=how.compression,
        enable_idempotence=how.is_idempotent,
        linger_ms=how.linger_ms,
        max_batch_size=how.batch_bytes,
        max_request_size=10_000_000,
    )
    await producer.start()
    try:
        sent = [
            await producer.send(
                topic,
                message.value,
                message.key,
                message.partition,
                message.timestamp_ms,
                list(message.headers),
            )
            for message in messages
        ]
        await producer.flush()
        return [(await future).offset if how.acks else -1 for future in sent]
    finally:
        await producer.stop()


@contextmanager
def refusals() -> Iterator[None]:
    """Its errors as Refused."""
    try:
        yield
    except KafkaError as error:
        raise Refused(error_name(type(error).__name__)) from error


class AioKafkaConsumer:
    """See ClientConsumer."""

    def __init__(self, servers: str, how: Joining) -> None:
        self._thread = LoopThread()
        self._client: Any = self._thread.run(self._start(servers, how))

    async def _start(self, servers: str, how: Joining) -> AIOKafkaConsumer:
        client = AIOKafkaConsumer(
            bootstrap_servers=servers,
            group_id=how.group_id,
            group_instance_id=how.group_instance_id,
            isolation_level=how.isolation_level,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            fetch_max_wait_ms=50,
        )
        await client.start()
        return client

    def subscribe(self, topic: str) -> None:
        """See ClientConsumer."""
        self._thread.run(self._call(self._client.subscribe, [topic]))

    async def _call(self, function: Any, *args: Any) -> Any:
        return function(*args)

    def assign(self, topic: str, positions: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        partitions = [TopicPartition(topic, index) for index in positions]
        self._thread.run(self._call(self._client.assign, partitions))
        for partition in partitions:
            self._thread.run(
                self._call(self._client.seek, partition, positions[partition.partition])
            )

    def poll(self, timeout_s: float = 0.05) -> list[Message]:
        """See ClientConsumer."""
        polled = self._thread.run(self._client.getmany(timeout_ms=int(timeout_s * 1000)))
        return [_received(raw) for batch in polled.values() for raw in batch]

    def partitions(self) -> set[int]:
        """See ClientConsumer."""
        return {each.partition for each in self._client.assignment()}

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        """See ClientConsumer."""
        wanted = {TopicPartition(topic, index): offset for index, offset in offsets.items()}
        self._thread.run(self._client.commit(wanted))

    commit_async = commit
    """Synchronous: aiokafka has no other."""

    def committed(self, topic: str, partition: int) -> int | None:
        """See ClientConsumer."""
        asked = TopicPartition(topic, partition)
        found: int | None = self._thread.run(self._client.committed(asked))
        return found

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """See ClientConsumer."""
        asked = TopicPartition(topic, partition)
        found = self._thread.run(self._client.offsets_for_times({asked: timestamp_ms}))[asked]
        return None if found is None else int(found.offset)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See ClientConsumer."""
        asked = TopicPartition(topic, partition)
        first = self._thread.run(self._client.beginning_offsets([asked]))[asked]
        return first, self._thread.run(self._client.end_offsets([asked]))[asked]

    def close(self) -> None:
        """See ClientConsumer."""
        self._thread.run(self._client.stop())
        self._thread.close()


def _received(raw: Any) -> Message:
    return Message(raw.value, raw.key, raw.partition, tuple(raw.headers), raw.timestamp, raw.offset)


class AioKafkaAdmin:
    """See ClientAdmin."""

    def __init__(self, servers: str) -> None:
        self._thread = LoopThread()
        self._client: Any = self._thread.run(self._start(servers))

    async def _start(self, servers: str) -> AIOKafkaAdminClient:
        client = AIOKafkaAdminClient(bootstrap_servers=servers)
        await client.start()
        return client

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """See ClientAdmin."""
        topic = NewTopic(name, partitions, 1, topic_configs=dict(configs))
        answer = self._thread.run(self._client.create_topics([topic]))
        _check(code for _, code, *_ in answer.topic_errors)

    def delete_topic(self, name: str) -> None:
        """See ClientAdmin."""
        answer = self._thread.run(self._client.delete_topics([name]))
        _check(code for _, code, *_ in answer.topic_error_codes)

    def add_partitions(self, name: str, total: int) -> None:
        """See ClientAdmin."""
        with refusals():
            self._thread.run(self._client.create_partitions({name: NewPartitions(total)}))

    def topics(self) -> dict[str, int]:
        """See ClientAdmin."""
        described = self._thread.run(self._client.describe_topics())
        return {topic["topic"]: len(topic["partitions"]) for topic in described}

    def topic_config(self, name: str, key: str) -> str | None:
        """See ClientAdmin."""
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        (answer,) = self._thread.run(self._client.describe_configs([resource]))
        ((_, _, _, _, entries),) = answer.resources
        values: dict[str, str | None] = {entry[0]: entry[1] for entry in entries}
        return values[key]

    def set_topic_config(self, name: str, key: str, value: str) -> None:
        """See ClientAdmin."""
        resource = ConfigResource(ConfigResourceType.TOPIC, name, {key: value})
        (answer,) = self._thread.run(self._client.alter_configs([resource]))
        _check(code for code, *_ in answer.resources)

    def groups(self) -> set[str]:
        """See ClientAdmin."""
        return {group[0] for group in self._thread.run(self._client.list_consumer_groups())}

    def group_state(self, group_id: str) -> str:
        """See ClientAdmin."""
        (answer,) = self._thread.run(self._client.describe_consumer_groups([group_id]))
        ((_, _, state, *_),) = answer.groups
        return str(state).lower()

    def delete_group(self, group_id: str) -> None:
        """Not supported; contracts that need it require the ability."""
        raise NotImplementedError(group_id)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """See ClientAdmin."""
        wanted = {TopicPartition(topic, partition): RecordsToDelete(before)}
        with refusals():
            self._thread.run(self._client.delete_records(wanted))

    def close(self) -> None:
        """See ClientAdmin."""
        self._thread.run(self._client.close())
        self._thread.close()


def _check(codes: Iterator[int]) -> None:
    for code in codes:
        if code:
            raise Refused(error_name(for_code(code).__name__))
