"""The contract of all stores, on the embedded one and on a real ZooKeeper."""

import asyncio
import time

import pytest

from broker.metadata.errors import (
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    StoreError,
)
from broker.metadata.session import SessionState
from broker.metadata.store import (
    Check,
    Create,
    Delete,
    EventKind,
    MetadataStore,
    Operation,
    SetData,
    Stat,
    WatchEvent,
)
from tests.metadata.conftest import StoreMaker


class Events:
    """A watch's callback that tests can wait on."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[WatchEvent] = asyncio.Queue()
        self.seen: list[WatchEvent] = []

    def __call__(self, event: WatchEvent) -> None:
        self.seen.append(event)
        self._queue.put_nowait(event)

    async def wait(self, kind: EventKind) -> WatchEvent:
        """The next event of a kind; others before it are skipped."""
        async with asyncio.timeout(15):
            while True:
                event = await self._queue.get()
                if event.kind is kind:
                    return event


async def flush(store: MetadataStore) -> None:
    """Return when the events of changes made so far have been delivered."""
    await store.exists("/")
    await asyncio.sleep(0)


class TestNodes:
    async def test_created_node_reads_back_with_its_stat(self, maker: StoreMaker) -> None:
        before_ms = time.time() * 1000
        async with maker.open() as store:
            assert await store.create("/a", b"one") == "/a"
            data, stat = await store.get("/a")
            assert data == b"one"
            assert stat.czxid == stat.mzxid == stat.pzxid > 0
            assert before_ms - 5000 < stat.ctime == stat.mtime < time.time() * 1000 + 5000
            assert (stat.version, stat.cversion, stat.ephemeral_owner) == (0, 0, 0)
            assert stat.num_children == 0

    async def test_no_data_and_empty_data_are_distinguished(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/none")
            await store.create("/empty", b"")
            assert (await store.get("/none")).data is None
            assert (await store.get("/empty")).data == b""
            await store.set("/empty", None)
            assert (await store.get("/empty")).data is None

    async def test_set_raises_the_version_and_keeps_the_creation_zxid(
        self, maker: StoreMaker
    ) -> None:
        async with maker.open() as store:
            await store.create("/a", b"one")
            created = (await store.get("/a")).stat
            changed = await store.set("/a", b"two", version=0)
            assert (await store.get("/a")) == (b"two", changed)
            assert changed.version == 1
            assert changed.czxid == created.czxid
            assert changed.mzxid > created.mzxid

    async def test_missing_nodes_are_no_node_except_for_exists(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            assert await store.exists("/a") is None
            with pytest.raises(NoNode, match="/a: no such node"):
                await store.get("/a")
            with pytest.raises(NoNode, match=r"/a/b: .*parent is missing"):
                await store.create("/a/b")
            for call in (
                store.children("/a"),
                store.set("/a", b""),
                store.delete("/a"),
            ):
                with pytest.raises(NoNode):
                    await call

    async def test_node_that_exists_is_not_created_again(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/a", b"one")
            with pytest.raises(NodeExists) as caught:
                await store.create("/a", b"two")
            assert caught.value.path == "/a"
            assert (await store.get("/a")).data == b"one"

    async def test_wrong_version_changes_nothing(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/a", b"one")
            with pytest.raises(BadVersion):
                await store.set("/a", b"two", version=3)
            with pytest.raises(BadVersion):
                await store.delete("/a", version=3)
            data, stat = await store.get("/a")
            assert (data, stat.version) == (b"one", 0)

    async def test_node_with_children_is_not_deleted(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.multi([Create("/a"), Create("/a/b")])
            with pytest.raises(NotEmpty):
                await store.delete("/a")
            with pytest.raises(BadVersion):  # checked first
                await store.delete("/a", version=1)
            await store.delete("/a/b", version=0)
            await store.delete("/a")
            assert await store.exists("/a") is None

    async def test_children_are_sorted_names(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.multi([Create("/p"), Create("/p/b"), Create("/p/a"), Create("/p/a/x")])
            assert await store.children("/p") == ["a", "b"]
            assert "p" in await store.children("/")

    async def test_stat_of_a_parent_counts_created_and_deleted_children(
        self, maker: StoreMaker
    ) -> None:
        async with maker.open() as store:
            await store.create("/p")
            for name in ("a", "b", "c"):
                await store.create(f"/p/{name}")
            await store.delete("/p/b")
            stat = await store.exists("/p")
            assert stat
            assert (stat.version, stat.cversion, stat.num_children) == (0, 4, 2)
            assert stat.pzxid > stat.czxid

    @pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/a/./b", "/..", "/a\0"])
    async def test_malformed_path_is_a_value_error(self, maker: StoreMaker, path: str) -> None:
        async with maker.open() as store:
            for call in (store.get(path), store.exists(path), store.create(path)):
                with pytest.raises(ValueError, match="not a legal path of a node"):
                    await call


class TestSequence:
    async def test_names_count_the_children_ever_created(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/q")
            assert await store.create("/q/n_", sequence=True) == "/q/n_0000000000"
            await store.create("/q/other")
            assert await store.create("/q/n_", b"x", sequence=True) == "/q/n_0000000002"
            await store.delete("/q/n_0000000002")
            made = await store.create("/q/e_", sequence=True, ephemeral=True)
            assert made == "/q/e_0000000003"
            assert (await store.get(made)).stat.ephemeral_owner == store.session.id

    async def test_calls_take_effect_in_the_order_they_were_made(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/q")
            made = await asyncio.gather(
                *(store.create("/q/", bytes([n]), sequence=True) for n in range(50))
            )
            assert made == sorted(made)


class TestMulti:
    async def test_results_are_path_stat_and_nothing(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/old")
            path, stat, checked, deleted = await store.multi(
                [Create("/a"), SetData("/a", b"x", 0), Check("/old", 0), Delete("/old")]
            )
            assert (path, checked, deleted) == ("/a", None, None)
            assert isinstance(stat, Stat)
            assert stat == await store.exists("/a")
            assert stat.version == 1
            assert stat.czxid == stat.mzxid

    async def test_empty_multi_succeeds(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            assert await store.multi([]) == []

    async def test_error_is_that_of_the_failing_operation_and_nothing_is_changed(
        self, maker: StoreMaker
    ) -> None:
        async with maker.open() as store:
            await store.multi([Create("/a", b"one"), Create("/a/b")])
            before = await store.get("/a")
            failing: list[tuple[Operation, type[StoreError]]] = [
                (Create("/a"), NodeExists),
                (Check("/a", 7), BadVersion),
                (Delete("/gone"), NoNode),
                (Delete("/a"), NotEmpty),
            ]
            for operation, error in failing:
                with pytest.raises(error) as caught:
                    await store.multi(
                        [
                            Create("/a/c"),
                            Create("/a/s_", sequence=True),
                            Delete("/a/b"),
                            Create("/a/b", b"again"),
                            operation,
                            Create("/never"),
                        ]
                    )
                assert caught.value.path == operation.path
            assert await store.get("/a") == before
            assert await store.children("/a") == ["b"]
            assert (await store.get("/a/b")).data is None
            assert await store.exists("/never") is None

    async def test_check_guards_a_change_elsewhere(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/controller_epoch", b"1")
            await store.multi([Check("/controller_epoch", 0), Create("/a")])
            await store.set("/controller_epoch", b"2")
            with pytest.raises(BadVersion):
                await store.multi([Check("/controller_epoch", 0), Create("/b")])
            assert await store.exists("/b") is None


class TestEphemerals:
    async def test_ephemeral_node_ends_with_its_store(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/lasting", b"x")
            await store.create("/passing", b"y", ephemeral=True)
            stat = await store.exists("/passing")
            assert stat
            assert stat.ephemeral_owner == store.session.id != 0
        async with maker.open() as store:
            assert await store.exists("/lasting")
            assert await store.exists("/passing") is None

    async def test_ephemeral_node_has_no_children(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/e", ephemeral=True)
            for sequence in (False, True):
                with pytest.raises(NoChildrenForEphemerals) as caught:
                    await store.create("/e/child", sequence=sequence)
                assert caught.value.path == "/e/child"

    async def test_creation_zxids_grow_across_reopening(self, maker: StoreMaker) -> None:
        broker_epochs = []
        for _ in range(3):
            async with maker.open() as store:
                await store.create("/1", ephemeral=True)
                broker_epochs.append((await store.get("/1")).stat.czxid)
        assert broker_epochs == sorted(set(broker_epochs))


class TestWatches:
    async def test_data_watch_reports_creation_change_and_deletion(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            events = Events()
            store.watch_data("/a", events)
            await store.create("/a")
            assert await events.wait(EventKind.CREATED) == (EventKind.CREATED, "/a")
            for _ in range(2):
                await store.set("/a", b"x")
                await events.wait(EventKind.CHANGED)
            await store.delete("/a")
            await events.wait(EventKind.DELETED)
            await store.create("/a")
            await events.wait(EventKind.CREATED)

    async def test_children_watch_reports_added_and_removed_children(
        self, maker: StoreMaker
    ) -> None:
        async with maker.open() as store:
            await store.create("/p")
            events = Events()
            store.watch_children("/p", events)
            for name in ("a", "b"):
                await store.create(f"/p/{name}", ephemeral=True)
                await events.wait(EventKind.CHILDREN)
                assert name in await store.children("/p")
            await store.delete("/p/a")
            await events.wait(EventKind.CHILDREN)
            assert await store.children("/p") == ["b"]

    async def test_children_watch_outlives_its_node(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            events = Events()
            store.watch_children("/p", events)
            for _ in range(2):
                await store.create("/p")
                await events.wait(EventKind.CHILDREN)
                await store.create("/p/a")
                await events.wait(EventKind.CHILDREN)
                await store.delete("/p/a")
                await events.wait(EventKind.CHILDREN)
                await store.delete("/p")
                await events.wait(EventKind.CHILDREN)

    async def test_children_watch_does_not_report_data_and_grandchildren(
        self, maker: StoreMaker
    ) -> None:
        async with maker.open() as store:
            await store.multi([Create("/p"), Create("/p/a")])
            children, data = Events(), Events()
            store.watch_children("/p", children)
            store.watch_data("/p", data)
            await store.set("/p", b"x")
            await store.set("/p/a", b"x")
            await store.create("/p/a/b")
            await flush(store)
            assert children.seen == []
            assert data.seen == [(EventKind.CHANGED, "/p")]

    async def test_a_reader_that_reads_at_every_event_misses_no_change(
        self, maker: StoreMaker
    ) -> None:
        async with maker.open() as reader, maker.second(reader) as writer:
            await writer.create("/p")
            changed = asyncio.Event()
            reader.watch_children("/p", lambda _: changed.set())
            known = set(await reader.children("/p"))
            creation = asyncio.gather(*(writer.create(f"/p/{n}") for n in range(200)))
            async with asyncio.timeout(15):
                while len(known) < 200:
                    await changed.wait()
                    changed.clear()
                    known = set(await reader.children("/p"))
            await creation

    async def test_cancelled_watch_gets_no_events_and_others_do(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            cancelled, going_on = Events(), Events()
            watch = store.watch_data("/a", cancelled)
            store.watch_data("/a", going_on)
            await store.create("/a")
            watch.cancel()
            watch.cancel()
            await store.set("/a", b"x")
            await going_on.wait(EventKind.CHANGED)
            assert EventKind.CHANGED not in {event.kind for event in cancelled.seen}

    async def test_multi_reports_many_children_once(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            await store.create("/p")
            events = Events()
            store.watch_children("/p", events)
            await store.multi([Create(f"/p/{n}") for n in range(500)])
            await events.wait(EventKind.CHILDREN)
            await flush(store)
            assert len(events.seen) == 1


class TestSession:
    async def test_expiry_deletes_ephemerals_notifies_watches_and_starts_a_new_session(
        self, maker: StoreMaker
    ) -> None:
        async with maker.open() as store:
            states: list[SessionState] = []
            expired = asyncio.Event()
            connected = asyncio.Event()
            store.session.on_state(states.append)
            store.session.on_expired(expired.set)
            await store.multi([Create("/ids"), Create("/ids/1", ephemeral=True)])
            node, ids, quiet = Events(), Events(), Events()
            store.watch_data("/ids/1", node)
            store.watch_children("/ids", ids)
            store.watch_children("/", quiet)
            first_session = store.session.id
            await flush(store)
            store.session.on_state(
                lambda state: connected.set() if state is SessionState.CONNECTED else None
            )

            await maker.expire(store)
            async with asyncio.timeout(15):
                await expired.wait()
                await connected.wait()

            assert states[-1] is SessionState.CONNECTED
            assert SessionState.EXPIRED in states
            assert store.session.id not in (0, first_session)
            for events in (node, ids, quiet):
                await events.wait(EventKind.SESSION_EXPIRED)
            await node.wait(EventKind.DELETED)
            await ids.wait(EventKind.CHILDREN)
            assert await store.children("/ids") == []

            await store.create("/ids/1", ephemeral=True)
            await node.wait(EventKind.CREATED)
            await ids.wait(EventKind.CHILDREN)
            assert EventKind.CHILDREN not in {event.kind for event in quiet.seen}

    async def test_closed_store_rejects_changes(self, maker: StoreMaker) -> None:
        async with maker.open() as store:
            before = store.session.state
            events = Events()
            store.watch_children("/", events)
            await store.close()
            await store.close()
            assert (before, store.session.state) == (SessionState.CONNECTED, SessionState.CLOSED)
            with pytest.raises(StoreError):
                await store.create("/a")
            assert events.seen == []
