"""What all parts of an active controller share, from its election until it resigns."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from broker.config.dynamic import DynamicConfig
from broker.controller.channels import ChannelManager
from broker.controller.context import ControllerContext
from broker.controller.fenced_store import FencedStore
from broker.controller.request_batch import RequestBatch, Sender
from broker.model import TopicPartition


@dataclass(frozen=True)
class Term:
    """One controller epoch: what is known, where it is written, who is told."""

    broker_id: int
    configs: DynamicConfig
    store: FencedStore
    context: ControllerContext
    channels: ChannelManager
    sender: Sender
    later: Callable[[str, Callable[[], Awaitable[object]]], None]
    """Queues an event, under a name; an event that waits already under it is enough."""

    @property
    def epoch(self) -> int:
        """The controller epoch."""
        return self.store.epoch

    def batch(self) -> RequestBatch:
        """A new, empty batch of requests."""
        return RequestBatch(self.context, self.sender)

    async def refresh(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Read leaders and ISRs again; gives the partitions that have some."""
        names = list(partitions)
        found = await self.store.leaderships(names)
        for name in names:
            self.context.leaderships.pop(name, None)
        self.context.leaderships |= found
        return list(found)

    def send_metadata(
        self, partitions: Iterable[TopicPartition], brokers: Iterable[int] | None = None
    ) -> None:
        """Tell brokers (None: all of them) who is alive, and how these partitions are."""
        batch = self.batch()
        batch.add_update_metadata(self.context.brokers if brokers is None else brokers, partitions)
        batch.send()
