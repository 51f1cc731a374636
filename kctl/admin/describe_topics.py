"""Full descriptions of topics, queried in parallel."""

import asyncio
from collections.abc import Callable, Sequence

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.configs import describe_configs
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.admin.topics import gather_topics, live_brokers
from kctl.model.configs import Config, Entity, EntityType
from kctl.model.log_dirs import LogDir
from kctl.model.topics import Description, Topic

Choose = Callable[[Sequence[Topic]], Sequence[Topic]]


async def describe_topics(
    client: Client, names: list[str] | None, choose: Choose, *, with_data: bool
) -> Description:
    """The topics that `choose` selects from those called `names` (None: from all).

    `with_data` adds offsets and sizes: two more requests per leader and one per broker.
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
    """Configs by topic name."""
    entities = [Entity(EntityType.TOPICS, topic.name) for topic in topics]
    found = await describe_configs(client, entities, synonyms=False)
    return {entity.name: configs for entity, configs in found.items()}


async def _log_dirs(client: Client, topics: Sequence[Topic]) -> list[LogDir]:
    return await describe_log_dirs(client, topics=topics)
