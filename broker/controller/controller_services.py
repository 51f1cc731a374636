"""The objects that all parts of an active controller share, from its election until it resigns."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from broker.config.dynamic import DynamicConfig
from broker.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
    RequestSender,
)
from broker.controller.controller_channel_manager import ControllerChannelManager
from broker.controller.controller_context import ControllerContext
from broker.controller.fenced_store import FencedStore
from broker.model import TopicPartition


@dataclass(frozen=True)
class ControllerServices:
    """The services of one controller epoch.

    Field `context`: the controller's memory of the cluster.
    Field `store`: the metadata store, fenced by the controller epoch.
    Field `channels`, `sender`: how requests reach the brokers.
    """

    broker_id: int
    configs: DynamicConfig
    store: FencedStore
    context: ControllerContext
    channels: ControllerChannelManager
    sender: RequestSender
    later: Callable[[str, Callable[[], Awaitable[object]]], None]
    """Queues an event under a name, unless one of that name is queued already."""

    @property
    def epoch(self) -> int:
        """The controller epoch."""
        return self.store.epoch

    def batch(self) -> ControllerBrokerRequestBatch:
        """A new, empty batch of requests to brokers."""
        return ControllerBrokerRequestBatch(self.context, self.sender)

    async def refresh(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Read leaders and ISRs from the store again; returns the partitions that have any."""
        names = list(partitions)
        found = await self.store.leaderships(names)
        for name in names:
            self.context.leaderships.pop(name, None)
        self.context.leaderships |= found
        return list(found)

    def send_metadata(
        self, partitions: Iterable[TopicPartition], brokers: Iterable[int] | None = None
    ) -> None:
        """Send brokers (None: all) the live brokers and the state of these partitions."""
        batch = self.batch()
        batch.add_update_metadata(self.context.brokers if brokers is None else brokers, partitions)
        batch.send()
