"""Topics that are made because somebody asks for them: what clients look for, the broker's own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sized

from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.controller.topic_admin import NewTopic
from broker.errors import ApiError, ErrorCode
from broker.topic_names import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

logger = logging.getLogger(__name__)


class AutoTopicCreation:
    """Makes topics, each once at a time.

    Field `_create`: asks the controller, wherever that is; ApiError says why it cannot be.
    """

    def __init__(
        self,
        configs: DynamicConfig,
        live_brokers: Callable[[], Sized],
        create: Callable[[NewTopic], Awaitable[object]],
    ) -> None:
        self._configs = configs
        self._live_brokers = live_brokers
        self._create = create
        self._creating: dict[str, asyncio.Task[None]] = {}
        """Topics that somebody wants and nobody waits for."""

    def request_creation(self, name: str) -> None:
        """Create a topic soon; who wants it will ask for it again."""
        if name not in self._creating:
            task = asyncio.get_running_loop().create_task(self._create_soon(name))
            self._creating[name] = task
            task.add_done_callback(lambda _: self._creating.pop(name, None))

    async def _create_soon(self, name: str) -> None:
        try:
            await self.auto_create(name)
        except ApiError as error:
            logger.warning("topic %s was not created: %s", name, error)

    async def auto_create(self, name: str) -> None:
        """Create a topic that a client asked for, unless somebody else did meanwhile."""
        try:
            num_brokers = len(self._live_brokers())
            await self._create(wanted_topic(name, self._configs.broker, num_brokers))
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def stop(self) -> None:
        """Make no more."""
        tasks = list(self._creating.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def wanted_topic(name: str, config: BrokerConfig, num_brokers: int) -> NewTopic:
    """A topic as the settings want it; the broker's own topics have settings of their own.

    Those get no more replicas than there can be: a cluster of one broker has room for one.
    """
    if name == OFFSETS_TOPIC:
        return NewTopic(
            name,
            config.offsets_topic_num_partitions,
            min(config.offsets_topic_replication_factor, num_brokers),
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
            min(config.transaction_state_log_replication_factor, num_brokers),
            configs={
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, num_brokers)),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
            },
        )
    return NewTopic(name)
