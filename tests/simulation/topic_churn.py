"""A client that deletes a topic and creates it again under the same name, over and over."""

import logging

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.records.builder import BatchSettings
from tests.simulation.clients import RETRIABLE, SimulatedClient, Violation, build_values, produce

TOPIC = "recreated"
logger = logging.getLogger(__name__)

_PARTITIONS = 2
_TIMEOUT_MS = 3000


class TopicRecreator(SimulatedClient):
    """Creates the topic, writes one batch to each partition with acks=all, and deletes it.

    Each batch must be the first of its partition: records of a deleted topic never come back.
    """

    async def run(self) -> None:
        """Repeat until `is_finishing` is set; the topic exists at the end."""
        await self._create()
        while not self.is_finishing:
            await self._write()
            await self._delete()
            await self._create()
            self.completed += 1

    async def _create(self) -> None:
        topic = CreatableTopic(name=TOPIC, num_partitions=_PARTITIONS, replication_factor=3)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
        while True:
            try:
                (made,) = (await self.client.send_to_controller(request)).topics
                logger.info("created topic=%s error=%s", TOPIC, ErrorCode(made.error_code).name)
                if made.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    return
            except RETRIABLE:
                pass
            await self.pause()

    async def _delete(self) -> None:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=TOPIC)], topic_names=[TOPIC], timeout_ms=_TIMEOUT_MS
        )
        is_requested = False
        while True:
            try:
                (answer,) = (await self.client.send_to_controller(request)).responses
                logger.info("deleted topic=%s error=%s", TOPIC, ErrorCode(answer.error_code).name)
                if answer.error_code == ErrorCode.NONE:
                    return
                if is_requested and answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    return
            except RETRIABLE:
                pass
            is_requested = True
            await self.pause()

    async def _write(self) -> None:
        producer_id, epoch = await self._init()
        settings = BatchSettings(producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
        for index in range(_PARTITIONS):
            partition = TopicPartition(TOPIC, index)
            data = build_values([b"one", b"two"], settings, self.cluster)
            offset = await self._send(partition, data)
            if offset > 0:
                raise Violation(f"{partition}: a new topic has {offset} records")

    async def _init(self) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        while True:
            try:
                response = await self.client.send(request)
                if not response.error_code:
                    return response.producer_id, response.producer_epoch
            except RETRIABLE:
                pass
            await self.pause()

    async def _send(self, partition: TopicPartition, data: bytes) -> int:
        while True:
            try:
                code, offset = await produce(self.client, partition, data)
                if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    return offset
                if not code.retriable:
                    raise Violation(f"{self.name}: {partition}: {code.name}")
            except RETRIABLE:
                pass
            await self.pause()
            # DeleteTopics succeeds when the topic is not in the metadata any more, as in Kafka. If
            # a replica is on a dead broker, CreateTopics still finds it then, and it goes later.
            await self._create()
