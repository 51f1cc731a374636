"""All there is to know about some topics, asked for at once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.configs import Config, Entity, EntityType, describe_configs
from kctl.admin.log_dirs import LogDir, describe_log_dirs
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.admin.topics import Topic, gather_topics, live_brokers

MIN_ISR = "min.insync.replicas"

Choose = Callable[[Sequence[Topic]], Sequence[Topic]]


@dataclass(frozen=True)
class Description:
    """All that was found out about some topics; what was not asked for is empty."""

    topics: Sequence[Topic]
    configs: Mapping[str, Sequence[Config]] = field(default_factory=dict)
    live_brokers: frozenset[int] = frozenset()
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    log_dirs: Sequence[LogDir] = ()

    def min_isr(self, topic: Topic) -> int:
        """How many replicas must be in sync for a write with acks=all."""
        values = [config.value for config in self.configs[topic.name] if config.name == MIN_ISR]
        return int(values[0]) if values and values[0] else 1

    def sizes(self) -> dict[tuple[TopicPartition, int], int]:
        """Bytes of each replica, by partition and broker; copies on their way not counted."""
        return {
            (replica.partition, log_dir.broker_id): replica.size_bytes
            for log_dir in self.log_dirs
            for replica in log_dir.replicas
            if not replica.is_future
        }


async def describe_topics(
    client: Client, names: list[str] | None, choose: Choose, *, with_data: bool
) -> Description:
    """The topics that `choose` picks out of those called `names` (None: of all).

    `with_data` adds offsets and sizes: two requests per leader and one per broker more.
    """
    topics = choose(await gather_topics(client, names))
    if not topics:
        return Description(())
    configs, brokers = await asyncio.gather(topic_configs(client, topics), live_brokers(client))
    if not with_data:
        return Description(topics, configs, brokers)
    partitions = [TopicPartition(topic.name, p.id) for topic in topics for p in topic.partitions]
    starts, ends, dirs = await asyncio.gather(
        log_starts(client, partitions), log_ends(client, partitions), _log_dirs(client, topics)
    )
    return Description(topics, configs, brokers, starts, ends, dirs)


async def topic_configs(client: Client, topics: Sequence[Topic]) -> dict[str, list[Config]]:
    """The settings of each topic, by its name."""
    entities = [Entity(EntityType.TOPICS, topic.name) for topic in topics]
    found = await describe_configs(client, entities, synonyms=False)
    return {entity.name: configs for entity, configs in found.items()}


async def _log_dirs(client: Client, topics: Sequence[Topic]) -> list[LogDir]:
    return await describe_log_dirs(client, topics=topics)
