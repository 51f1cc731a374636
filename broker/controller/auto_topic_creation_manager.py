"""Kafka's AutoTopicCreationManager: creates topics that clients request, and internal topics."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.config.values import MAX_SHORT
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

logger = logging.getLogger(__name__)


class AutoTopicCreationManager:
    """Creates topics; of each, at most one request is in flight without a caller.

    Field `_create`: creates a topic on the controller, local or remote; ApiError if it fails.
    Field `_is_alone`: this broker uses the embedded store, so that the cluster has no other broker.
    """

    def __init__(
        self,
        configs: DynamicConfig,
        create: Callable[[NewTopic], Awaitable[object]],
        *,
        is_alone: bool,
    ) -> None:
        self._configs = configs
        self._create = create
        self._is_alone = is_alone
        self._creating: dict[str, asyncio.Task[None]] = {}
        """Requests in flight without a caller, by topic."""

    def request_creation(self, name: str) -> None:
        """Create a topic in the background; the client retries its request."""
        if name not in self._creating:
            task = asyncio.get_running_loop().create_task(self._create_soon(name))
            self._creating[name] = task
            task.add_done_callback(lambda _: self._creating.pop(name, None))

    async def _create_soon(self, name: str) -> None:
        try:
            await self.auto_create(name)
        except ApiError as error:
            logger.warning("Failed to create topic=%r: %s", name, error)

    async def auto_create(self, name: str) -> None:
        """Create a topic; no error if it exists by now."""
        try:
            await self._create(wanted_topic(name, self._configs.broker, is_alone=self._is_alone))
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def stop(self) -> None:
        """Cancel the requests in flight."""
        tasks = list(self._creating.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def wanted_topic(name: str, config: BrokerConfig, *, is_alone: bool) -> NewTopic:
    """A topic with the defaults of the config; internal topics have configs of their own.

    A broker that is alone can hold one replica of these, whatever is configured. In a cluster they
    are not created before there are enough brokers for the configured replication factor: offsets
    and transactions must not be kept with fewer replicas.
    """
    most = 1 if is_alone else MAX_SHORT
    if name == OFFSETS_TOPIC:
        return NewTopic(
            name,
            config.offsets_topic_num_partitions,
            min(config.offsets_topic_replication_factor, most),
            configs={
                "cleanup.policy": "compact",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
                "compression.type": "producer",
            },
        )
    if name == TRANSACTION_STATE_TOPIC:
        return NewTopic(
            name,
            config.transaction_state_log_num_partitions,
            min(config.transaction_state_log_replication_factor, most),
            configs={
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, most)),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
            },
        )
    return NewTopic(name, config.num_partitions, config.default_replication_factor)
