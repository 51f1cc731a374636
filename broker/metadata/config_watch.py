"""Keeps a broker's settings as the store has them: read at start, then followed.

Changes are announced by notes. The settings that a topic is created with are not: they are read
when the controller first tells of the topic, under its id, so that a topic which takes the name of
a deleted one does not inherit from it.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from broker.clock import Clock
from broker.config.dynamic import CLUSTER_DEFAULT, DynamicConfig, EntityType
from broker.metadata.change_notes import ChangeNotes
from broker.metadata.config_store import ZnodeConfigStore
from broker.metadata.errors import NoNode
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.configs import CONFIG_PATH, ConfigChangeZnode
from broker.model import Uuid


class ConfigWatch:
    """See the module.

    Field `_topic_ids`: of the topics whose settings are known; None before their id is.
    """

    def __init__(self, store: MetadataStore, dynamic: DynamicConfig, clock: Clock) -> None:
        self._store = store
        self._configs = ZnodeConfigStore(store)
        self._dynamic = dynamic
        self._notes = ChangeNotes(store, ConfigChangeZnode.PARENT, self._follow, clock)
        self._topic_ids: dict[str, Uuid | None] = {}

    async def start(self) -> None:
        """Take over what the store has, and every change from now on."""
        await self._notes.start()
        for name in (CLUSTER_DEFAULT, str(self._dynamic.broker_id)):
            await self._read(EntityType.BROKER, name)
        topics = await self._topics_with_settings()
        await self._read_topics(topics)
        self._topic_ids = dict.fromkeys(topics)

    async def stop(self) -> None:
        """Take over nothing more."""
        await self._notes.stop()

    async def on_topics(self, topic_ids: Mapping[str, Uuid]) -> None:
        """The controller tells of topics: read the settings of those that are new."""
        new = [topic for topic, topic_id in topic_ids.items() if not self._knows(topic, topic_id)]
        if new:
            await self._read_topics(new)
        self._topic_ids.update(topic_ids)

    def _knows(self, topic: str, topic_id: Uuid) -> bool:
        return topic in self._topic_ids and self._topic_ids[topic] in (None, topic_id)

    def on_topics_deleted(self, topics: Iterable[str]) -> None:
        """Forget the settings of topics."""
        for topic in topics:
            if self._topic_ids.pop(topic, None) is not None or self._dynamic.of_topic(topic):
                self._dynamic.apply(EntityType.TOPIC, topic, {})

    async def _follow(self, note: bytes | None) -> None:
        """Read what a note names; users, clients and addresses have no settings here."""
        entity_type, _, name = ConfigChangeZnode.decode(note).partition("/")
        if entity_type in EntityType.__members__.values():
            await self._read(EntityType(entity_type), name)

    async def _read(self, entity_type: EntityType, name: str) -> None:
        async with self._dynamic.changing:
            self._apply(entity_type, name, await self._configs.read(entity_type, name))

    async def _read_topics(self, topics: Sequence[str]) -> None:
        """All at once; a change that overtakes one of them has left a note."""
        found = await asyncio.gather(*(self._configs.read(EntityType.TOPIC, t) for t in topics))
        for topic, config in zip(topics, found, strict=True):
            self._apply(EntityType.TOPIC, topic, config)

    def _apply(self, entity_type: EntityType, name: str, config: Mapping[str, str]) -> None:
        is_news = entity_type is not EntityType.TOPIC or config != self._dynamic.of_topic(name)
        if is_news:
            self._dynamic.apply(entity_type, name, config)

    async def _topics_with_settings(self) -> list[str]:
        try:
            return await self._store.children(f"{CONFIG_PATH}/{EntityType.TOPIC}")
        except NoNode:
            return []
