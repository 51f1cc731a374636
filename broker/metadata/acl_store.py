"""ACLs in the metadata store, as Kafka's AclAuthorizer keeps them.

They are read at startup and again when a notification names their pattern. Changes are made with
the version of the znode, so that brokers of both kinds can change the same pattern at once; each
change is announced to the others by a notification, and is effective here when `update` returns.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from broker.clock import Clock
from broker.errors import ApiError, ErrorCode
from broker.metadata.change_notification_listener import ChangeNotificationListener
from broker.metadata.errors import BadVersion, NodeExists, NoNode, StoreError
from broker.metadata.recursive import ensure_path
from broker.metadata.store import MetadataStore
from broker.metadata.znodes.acls import (
    PATTERN_TYPES,
    RESOURCE_TYPES,
    AclChangeZnode,
    ResourceZnode,
    resource_type_path,
)
from broker.metadata.znodes.json_text import MalformedZnode
from broker.metadata.znodes.layout import authorizer_paths
from broker.security.acls import AccessControlEntry, PatternType, ResourcePattern

logger = logging.getLogger(__name__)

_MAX_RETRIES: Final = 10
_BACKOFF_S: Final = (0.1, 0.15)
_MISSING: Final = -2
"""The version of a node that does not exist."""

Entries = Sequence[AccessControlEntry]


class _Stored(NamedTuple):
    entries: list[AccessControlEntry]
    version: int


class AclStore:
    """Reads and changes ACLs, and keeps a subscriber informed of all of them.

    Field `_subscriber`: called with the entries of each pattern, at startup and when they change.
    Field `_changing`: held while a pattern is read and passed on, so that an older state does not
    overtake a newer one.
    """

    def __init__(
        self,
        store: MetadataStore,
        subscriber: Callable[[ResourcePattern, Entries], None],
        clock: Clock,
    ) -> None:
        self._store = store
        self._subscriber = subscriber
        self._changing = asyncio.Lock()
        self._listeners = [
            ChangeNotificationListener(
                store, AclChangeZnode.LITERAL_PARENT, self._on_literal_change, clock
            ),
            ChangeNotificationListener(
                store, AclChangeZnode.EXTENDED_PARENT, self._on_extended_change, clock
            ),
        ]

    async def start(self) -> None:
        """Read all ACLs, and follow changes from now on; StoreError if they cannot be read."""
        for path in authorizer_paths():
            await ensure_path(self._store, path)
        for listener in self._listeners:
            await listener.start()
        for pattern_type in PATTERN_TYPES:
            for resource_type in RESOURCE_TYPES:
                parent = resource_type_path(resource_type, pattern_type)
                names = await self._store.children(parent)
                patterns = [ResourcePattern(resource_type, name, pattern_type) for name in names]
                await asyncio.gather(*map(self._load, patterns))

    async def stop(self) -> None:
        """Stop following changes."""
        for listener in self._listeners:
            await listener.stop()

    async def update(
        self, pattern: ResourcePattern, change: Callable[[list[AccessControlEntry]], Entries]
    ) -> None:
        """Replace the entries of a pattern by the result of `change`.

        `change` is called again each time another broker has changed the pattern in between.
        ApiError after too many such conflicts, or if the name is not valid as a znode's name.
        """
        async with self._changing:
            for _ in range(_MAX_RETRIES + 1):
                current = await self._read(pattern)
                entries = list(dict.fromkeys(change(current.entries)))
                if await self._write(pattern, entries, current.version):
                    break
                await asyncio.sleep(random.uniform(*_BACKOFF_S))  # noqa: S311  # not a secret
            else:
                raise ApiError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Failed to update ACLs for {pattern} after trying a maximum of "
                    f"{_MAX_RETRIES} times",
                )
            self._subscriber(pattern, entries)
            if set(entries) != set(current.entries):
                logger.info("Updated ACLs for %s acls=%s", pattern, len(entries))
                notification = AclChangeZnode.encode(pattern)
                path = AclChangeZnode.prefix(pattern)
                await self._store.create(path, notification, sequence=True)

    async def _write(self, pattern: ResourcePattern, entries: Entries, version: int) -> bool:
        """Write the entries, unless the node has changed since it was read."""
        path = ResourceZnode.path(pattern)
        try:
            if not entries:
                if version != _MISSING:
                    await self._store.delete(path, version)
            elif version == _MISSING:
                await self._store.create(path, ResourceZnode.encode(entries))
            else:
                await self._store.set(path, ResourceZnode.encode(entries), version)
        except (BadVersion, NodeExists):
            return False
        except NoNode:
            return not entries
        return True

    async def _read(self, pattern: ResourcePattern) -> _Stored:
        path = ResourceZnode.path(pattern)
        try:
            node = await self._store.get(path)
        except NoNode:
            return _Stored([], _MISSING)
        except ValueError as error:  # not a valid znode name
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        return _Stored(ResourceZnode.decode(path, node.data), node.stat.version)

    async def _load(self, pattern: ResourcePattern) -> None:
        try:
            stored = await self._read(pattern)
        except MalformedZnode as error:
            raise StoreError(error.path, f"its ACLs cannot be read: {error}") from error
        self._subscriber(pattern, stored.entries)

    async def _on_literal_change(self, data: bytes | None) -> None:
        await self._reload(AclChangeZnode.decode_literal(data))

    async def _on_extended_change(self, data: bytes | None) -> None:
        await self._reload(AclChangeZnode.decode_extended(data))

    async def _reload(self, pattern: ResourcePattern) -> None:
        if pattern.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
            return
        async with self._changing:
            stored = await self._read(pattern)
            logger.info(
                "Processing Acl change notification for %s acls=%s version=%s",
                pattern,
                len(stored.entries),
                stored.version,
            )
            self._subscriber(pattern, stored.entries)
