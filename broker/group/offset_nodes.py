"""Offsets in the metadata store, where OffsetCommit v0 keeps them.

`/consumers/<group>/offsets/<topic>/<partition>` holds the offset as decimal text. Commits are not
checked against a group, and nothing expires.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import NodeExists, NoNode, StoreError
from broker.metadata.recursive import create_recursive
from broker.metadata.store import MetadataStore
from broker.model import TopicPartition


class OffsetNodes:
    """The offsets of old consumers. Errors of the store become an ApiError with the znode path."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def read_offset(self, group_id: str, partition: TopicPartition) -> int | None:
        """The offset; None if none was committed. ApiError if the data is not a number."""
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
        except NodeExists:  # created by another consumer meanwhile
            await self._store.set(path, data)


@contextmanager
def _fence(path: str) -> Iterator[None]:
    """Translate invalid paths, invalid data and errors of the store into ApiError."""
    try:
        yield
    except (ValueError, StoreError) as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{path}: {error}") from error


def _path(group_id: str, partition: TopicPartition) -> str:
    return f"/consumers/{group_id}/offsets/{partition.topic}/{partition.partition}"
