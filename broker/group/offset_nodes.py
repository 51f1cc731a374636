"""Offsets in the metadata store, where the consumers of OffsetCommit v0 keep them.

`/consumers/<group>/offsets/<topic>/<partition>` holds the offset as decimal text. Anybody may write
there, no group is asked, and nothing expires.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import NodeExists, NoNode, StoreError
from broker.metadata.recursive import create_recursive
from broker.metadata.store import MetadataStore
from broker.model import TopicPartition


class OffsetNodes:
    """The offsets of old consumers. What the store refuses is an ApiError that names the znode."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def read_offset(self, group_id: str, partition: TopicPartition) -> int | None:
        """The offset; None if none was committed. ApiError if it is not a number."""
        path = _path(group_id, partition)
        with _fence(path):
            try:
                data = (await self._store.get(path)).data
            except NoNode:
                return None
            return None if data is None else int(data)

    async def write_offset(self, group_id: str, partition: TopicPartition, offset: int) -> None:
        """Commit an offset."""
        path, data = _path(group_id, partition), str(offset).encode()
        with _fence(path):
            try:
                await self._store.set(path, data)
            except NoNode:
                await self._create(path, data)

    async def _create(self, path: str, data: bytes) -> None:
        try:
            await create_recursive(self._store, path, data)
        except NodeExists:  # another consumer was quicker
            await self._store.set(path, data)


@contextmanager
def _fence(path: str) -> Iterator[None]:
    """A group id that cannot be in a path, data that is no number, a store that is not there."""
    try:
        yield
    except (ValueError, StoreError) as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{path}: {error}") from error


def _path(group_id: str, partition: TopicPartition) -> str:
    return f"/consumers/{group_id}/offsets/{partition.topic}/{partition.partition}"
