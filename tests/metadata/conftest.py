"""Stores to test, and tests that are coroutines."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import pytest
from kazoo.client import KazooClient

from broker.metadata.embedded import EmbeddedStore
from broker.metadata.store import MetadataStore
from broker.metadata.zookeeper import ZooKeeperSettings, ZooKeeperStore


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


class StoreMaker(Protocol):
    """One kind of store: how to open it, and how to end its session from outside."""

    def open(self) -> AbstractAsyncContextManager[MetadataStore]: ...

    def second(self, first: MetadataStore) -> AbstractAsyncContextManager[MetadataStore]:
        """Another user of the same tree: a session of its own, where there can be two."""
        ...

    async def expire(self, store: MetadataStore) -> None: ...


class EmbeddedMaker:
    def __init__(self, path: Path) -> None:
        self.path = path

    @asynccontextmanager
    async def open(self) -> AsyncIterator[MetadataStore]:
        store = EmbeddedStore.open(self.path)
        try:
            yield store
        finally:
            await store.close()

    def second(self, first: MetadataStore) -> AbstractAsyncContextManager[MetadataStore]:
        return nullcontext(first)

    async def expire(self, store: MetadataStore) -> None:
        assert isinstance(store, EmbeddedStore)
        store.expire_session()


class ZooKeeperMaker:
    def __init__(self, connect: str) -> None:
        self.settings = ZooKeeperSettings(connect, session_timeout_ms=4000)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[MetadataStore]:
        store = await ZooKeeperStore.open(self.settings)
        try:
            yield store
        finally:
            await store.close()

    def second(self, first: MetadataStore) -> AbstractAsyncContextManager[MetadataStore]:
        return self.open()

    async def expire(self, store: MetadataStore) -> None:
        """Close the session over a second connection that has its id and password."""
        assert isinstance(store, ZooKeeperStore)
        thief = KazooClient(self.settings.connect, client_id=store._client.client_id)
        await asyncio.to_thread(thief.start)
        await asyncio.to_thread(thief.stop)
        thief.close()


@pytest.fixture(params=["embedded", pytest.param("zookeeper", marks=pytest.mark.zk)])
def maker(request: pytest.FixtureRequest, tmp_path: Path) -> StoreMaker:
    """Each kind of store in turn, with nothing in it yet."""
    if request.param == "embedded":
        return EmbeddedMaker(tmp_path / "metadata.db")
    return ZooKeeperMaker(request.getfixturevalue("zookeeper"))
