"""Transactional producers of common clients, with one interface."""

import asyncio
import warnings
from typing import Any, Protocol

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from aiokafka.structs import TopicPartition as AioKafkaPartition
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic

with warnings.catch_warnings():  # it uses a deprecated way to read its schemas
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as KafkaPythonPartition
    from kafka.errors import KafkaError as KafkaPythonError
    from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

from tests.support.consumed import value_of

TIMEOUT_S = 20


class Fenced(Exception):
    """A newer producer has fenced this one."""


class TransactionalProducer(Protocol):
    """A producer with initialized transactions."""

    def begin(self) -> None: ...
    def send(self, topic: str, value: bytes, partition: int = 0) -> None: ...
    def send_offset(self, topic: str, offset: int, group_id: str) -> None: ...
    def commit(self) -> None:
        """Commit the transaction; raises Fenced if a newer producer exists."""

    def abort(self) -> None: ...
    def close(self) -> None: ...


class Confluent:
    """librdkafka."""

    def __init__(self, servers: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.client = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self.servers = servers
        self.client.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        self.client.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self.client.produce(topic, value, partition=partition)

    def flush(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until all records are sent, without ending the transaction."""
        assert self.client.flush(timeout_s) == 0

    def send_offset(self, topic: str, offset: int, group_id: str) -> None:
        group = Consumer({"bootstrap.servers": self.servers, "group.id": group_id})
        try:
            self.client.send_offsets_to_transaction(
                [ConfluentPartition(topic, 0, offset)], group.consumer_group_metadata(), TIMEOUT_S
            )
        finally:
            group.close()

    def commit(self, timeout_s: float = TIMEOUT_S) -> None:
        try:
            self.client.commit_transaction(timeout_s)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._FENCED:
                raise Fenced from error
            raise

    def abort(self, timeout_s: float = TIMEOUT_S) -> None:
        self.client.abort_transaction(timeout_s)

    def close(self) -> None:
        self.client.purge()


class KafkaPython:
    """kafka-python."""

    def __init__(self, servers: str, transactional_id: str) -> None:
        self.client: Any = KafkaProducer(
            bootstrap_servers=servers, transactional_id=transactional_id
        )
        self.client.init_transactions()

    def begin(self) -> None:
        self.client.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self.client.send(topic, value, partition=partition)

    def send_offset(self, topic: str, offset: int, group_id: str) -> None:
        offsets = {KafkaPythonPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}
        group = ConsumerGroupMetadata(group_id, -1, "", None)
        self.client.send_offsets_to_transaction(offsets, group)

    def commit(self) -> None:
        try:
            self.client.commit_transaction()
        except KafkaPythonError as error:
            if "Fenced" in repr(error) or "ProducerEpoch" in repr(error):
                raise Fenced from error
            raise

    def abort(self) -> None:
        self.client.abort_transaction()

    def close(self) -> None:
        self.client.close(timeout=1)


class AioKafka:
    """aiokafka, on an event loop that runs only during calls."""

    def __init__(self, servers: str, transactional_id: str) -> None:
        self.runner = asyncio.Runner()
        # A fenced producer leaves failed futures behind that aiokafka never awaits.
        self.runner.get_loop().set_exception_handler(lambda loop, context: None)
        self.client: Any = self.runner.run(self._start(servers, transactional_id))

    async def _start(self, servers: str, transactional_id: str) -> AIOKafkaProducer:
        client = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=transactional_id)
        await client.start()
        return client

    def begin(self) -> None:
        self.runner.run(self.client.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self.runner.run(self.client.send(topic, value, partition=partition))

    def send_offset(self, topic: str, offset: int, group_id: str) -> None:
        offsets = {AioKafkaPartition(topic, 0): offset}
        self.runner.run(self.client.send_offsets_to_transaction(offsets, group_id))

    def commit(self) -> None:
        try:
            self.runner.run(self.client.commit_transaction())
        except ProducerFenced as error:
            raise Fenced from error

    def abort(self) -> None:
        self.runner.run(self.client.abort_transaction())

    def close(self) -> None:
        self.runner.run(self.client.stop())
        self.runner.close()


def create_topic(servers: str, topic: str, partitions: int = 1) -> None:
    """Create a topic, and wait until it and the offsets topic exist.

    The offsets topic must exist before `send_offset` with librdkafka 2.16: its FindCoordinator for
    TxnOffsetCommit is retried only twice, and `send_offsets_to_transaction` then hangs until a
    connection changes. That is how a slow topic creation, or a failover, stops such a client.
    """
    admin = AdminClient({"bootstrap.servers": servers})  # must live until its response arrives
    (made,) = admin.create_topics([NewTopic(topic, partitions, 1)]).values()
    made.result(TIMEOUT_S)
    committed(servers, topic, "any")


def read(servers: str, topic: str, isolation_level: str, partitions: int = 1) -> list[bytes]:
    """All records that a consumer with this isolation level can read now."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    values: list[bytes] = []
    consumer.assign([ConfluentPartition(topic, index, 0) for index in range(partitions)])
    ended = 0
    try:
        while ended < partitions:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"nothing came, after {values}"
            if (error := message.error()) is None:
                values.append(value_of(message))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
    finally:
        consumer.close()
    return values


def committed(servers: str, topic: str, group_id: str) -> int | None:
    """The committed offset of a group for partition 0; None if it has none."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group_id})
    try:
        (found,) = consumer.committed([ConfluentPartition(topic, 0)], timeout=TIMEOUT_S)
        return found.offset if found.offset >= 0 else None
    finally:
        consumer.close()


def read_first_with_kafka_python(servers: str, topic: str) -> bytes:
    """The first record of partition 0 that its consumer returns with read_committed."""
    consumer = KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    try:
        consumer.assign([KafkaPythonPartition(topic, 0)])
        consumer.seek_to_beginning()
        return bytes(next(consumer).value)
    finally:
        consumer.close()
