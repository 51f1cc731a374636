"""Kafka's ZkConfigManager: keeps the broker's dynamic configs as they are in the store.

They are read at startup and updated by notifications. The configs that a topic is created with are
not announced: they are read when the controller first sends the topic. A topic is identified by its
id here, so that a new topic does not inherit the configs of a deleted one with the same name.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from broker.clock import Clock
from broker.config.dynamic import CLUSTER_DEFAULT, DynamicConfig, EntityType
from broker.metadata.change_notification_listener import ChangeNotificationListener
from broker.metadata.config_store import ZnodeConfigStore
from broker.metadata.errors import NoNode
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.configs import CONFIG_PATH, ConfigChangeZnode
from broker.model import Uuid
from broker.tasks import Pauses
from broker.topic_names import name_problem

_READ_AT_ONCE: Final = 200


class ZkConfigManager:
    """Applies the configs in the store to DynamicConfig.

    Field `_topic_ids`: the ids of the topics whose configs have been read; None for a topic that
    was read before the controller sent its id.
    """

    def __init__(self, store: MetadataStore, dynamic: DynamicConfig, clock: Clock) -> None:
        self._store = store
        self._configs = ZnodeConfigStore(store)
        self._dynamic = dynamic
        self._notifications = ChangeNotificationListener(
            store, ConfigChangeZnode.PARENT, self._process, clock
        )
        self._topic_ids: dict[str, Uuid | None] = {}
        self._client_subscribers: list[Callable[[str], Awaitable[None]]] = []

    def on_client_change(self, subscriber: Callable[[str], Awaitable[None]]) -> None:
        """Call `subscriber` with each user, client id or IP address whose configs have changed.

        They are named by their path below /config: `users/alice/clients/c1`.
        """
        self._client_subscribers.append(subscriber)

    async def start(self) -> None:
        """Read the configs in the store, and apply every change from now on."""
        await self._notifications.start()
        for name in (CLUSTER_DEFAULT, str(self._dynamic.broker_id)):
            await self._read(EntityType.BROKER, name)
        topics = await self._topics_with_settings()
        await self._read_topics(topics)
        self._topic_ids = dict.fromkeys(topics)

    async def stop(self) -> None:
        """Stop applying changes."""
        await self._notifications.stop()

    async def on_topics(self, topic_ids: Mapping[str, Uuid]) -> None:
        """Read the configs of topics that the controller sends for the first time.

        Topics with an illegal name are ignored here; the request's handler rejects them.
        """
        pauses = Pauses()
        legal: dict[str, Uuid] = {}
        new = []
        for topic, topic_id in topic_ids.items():
            await pauses.pause()
            if name_problem(topic) is None:
                legal[topic] = topic_id
                if not self._knows(topic, topic_id):
                    new.append(topic)
        if new:
            await self._read_topics(new)
        for topic, topic_id in legal.items():
            await pauses.pause()
            self._topic_ids[topic] = topic_id

    def _knows(self, topic: str, topic_id: Uuid) -> bool:
        return topic in self._topic_ids and self._topic_ids[topic] in (None, topic_id)

    def on_topics_deleted(self, topics: Iterable[str]) -> None:
        """Remove the configs of deleted topics."""
        for topic in topics:
            if self._topic_ids.pop(topic, None) is not None or self._dynamic.of_topic(topic):
                self._dynamic.apply(EntityType.TOPIC, topic, {})

    async def _process(self, notification: bytes | None) -> None:
        """Read the configs of the entity that has changed."""
        entity = ConfigChangeZnode.decode(notification)
        entity_type, _, name = entity.partition("/")
        if entity_type in EntityType.__members__.values():
            await self._read(EntityType(entity_type), name)
        else:
            for subscriber in self._client_subscribers:
                await subscriber(entity)

    async def _read(self, entity_type: EntityType, name: str) -> None:
        async with self._dynamic.changing:
            self._apply(entity_type, name, await self._configs.read(entity_type, name))

    async def _read_topics(self, topics: Sequence[str]) -> None:
        """Read concurrently, some at a time; a change in between has created a notification."""
        for start in range(0, len(topics), _READ_AT_ONCE):
            some = topics[start : start + _READ_AT_ONCE]
            found = await asyncio.gather(*(self._configs.read(EntityType.TOPIC, t) for t in some))
            for topic, config in zip(some, found, strict=True):
                self._apply(EntityType.TOPIC, topic, config)

    def _apply(self, entity_type: EntityType, name: str, config: Mapping[str, str]) -> None:
        has_changed = entity_type is not EntityType.TOPIC or config != self._dynamic.of_topic(name)
        if has_changed:
            self._dynamic.apply(entity_type, name, config)

    async def _topics_with_settings(self) -> list[str]:
        try:
            return await self._store.children(f"{CONFIG_PATH}/{EntityType.TOPIC}")
        except NoNode:
            return []
