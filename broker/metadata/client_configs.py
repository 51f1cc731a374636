"""Configs of users, client ids and IP addresses: quotas and SCRAM credentials.

    /config/users/U                    quotas and credentials of a user
    /config/users/U/clients/C          quotas of a client id when that user uses it
    /config/clients/C                  quotas of a client id
    /config/ips/I                      connection rate of an address

U, C and I are sanitized names or `<default>`. Entities are named by their path below /config, as in
change notifications: `users/alice/clients/c1`.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import NoNode
from broker.metadata.recursive import create_recursive, delete_recursive
from broker.metadata.store import MetadataStore, check_path
from broker.metadata.znodes.configs import CONFIG_PATH, ConfigChangeZnode, ConfigEntityZnode

_CLIENTS: Final = "clients"


class ClientConfigStore:
    """Reads and writes these configs; nothing is cached, as in Kafka's admin manager."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.changing = asyncio.Lock()
        """Held by a caller from reading a config until it has written the changed one."""

    async def read(self, entity: str) -> dict[str, str]:
        """The config of one entity; empty if it has none."""
        path = _path(entity)
        try:
            return ConfigEntityZnode.decode(path, (await self._store.get(path)).data)
        except NoNode:
            return {}

    async def read_all(self, parent: str) -> dict[str, dict[str, str]]:
        """The configs of all entities below `parent` (`users`, `users/U/clients`), by node name."""
        names = await self._children(f"{CONFIG_PATH}/{parent}")
        configs = await asyncio.gather(*(self.read(f"{parent}/{name}") for name in names))
        return dict(zip(names, configs, strict=True))

    async def write(self, entity: str, config: Mapping[str, str]) -> None:
        """Replace the config of one entity, and write a change notification.

        An entity without config and without children is deleted, and so are the parents that
        existed only for it. INVALID_REQUEST if its name is not valid as a znode's name.
        """
        path = _path(entity)
        if not config and not await self._children(path):
            await delete_recursive(self._store, await self._topmost_unused(entity))
        else:
            await self._set(path, ConfigEntityZnode.encode(config))
        notification = ConfigChangeZnode.encode(entity)
        await self._store.create(ConfigChangeZnode.PREFIX, notification, sequence=True)

    async def _set(self, path: str, data: bytes) -> None:
        try:
            await self._store.set(path, data)
        except NoNode:
            await create_recursive(self._store, path, data)

    async def _topmost_unused(self, entity: str) -> str:
        """The highest node to delete with `entity`: itself, users/U/clients or users/U."""
        path = f"{CONFIG_PATH}/{entity}"
        kind, name, *client = entity.split("/")
        if not client:
            return path
        user = f"{CONFIG_PATH}/{kind}/{name}"
        if await self._children(f"{user}/{_CLIENTS}") != [client[-1]]:
            return path
        if await self.read(f"{kind}/{name}") or await self._children(user) != [_CLIENTS]:
            return f"{user}/{_CLIENTS}"
        return user

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._store.children(path)
        except NoNode:
            return []


def _path(entity: str) -> str:
    """The node of an entity; INVALID_REQUEST for names such as `..`, illegal in ZooKeeper."""
    path = f"{CONFIG_PATH}/{entity}"
    try:
        check_path(path)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{entity} cannot be stored") from None
    return path
