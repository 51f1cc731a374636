"""Reads and writes the znodes below /config; implements `config.dynamic.ConfigStore`."""

from collections.abc import Mapping

from broker.metadata.errors import NoNode
from broker.metadata.recursive import create_recursive
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.configs import ConfigChangeZnode, ConfigEntityZnode


class ZnodeConfigStore:
    """The configs of topics, brokers and other entities in the metadata store."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def read(self, entity_type: str, name: str) -> dict[str, str]:
        """The configs of one entity; empty if it has none."""
        path = ConfigEntityZnode.path(entity_type, name)
        try:
            return ConfigEntityZnode.decode(path, (await self._store.get(path)).data)
        except NoNode:
            return {}

    async def write(self, entity_type: str, name: str, config: Mapping[str, str]) -> None:
        """Replace the configs of one entity, and notify every broker."""
        path = ConfigEntityZnode.path(entity_type, name)
        data = ConfigEntityZnode.encode(config)
        try:
            await self._store.set(path, data)
        except NoNode:
            await create_recursive(self._store, path, data)
        notification = ConfigChangeZnode.encode(path.removeprefix("/config/"))
        await self._store.create(ConfigChangeZnode.PREFIX, notification, sequence=True)
