"""Dynamic configs follow the store: notifications, new topics, recreated topics."""

import asyncio
from collections.abc import Callable

from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.config.dynamic import CLUSTER_DEFAULT, DynamicConfig, EntityType
from broker.metadata.change_notification_listener import EXPIRATION_MS, ChangeNotificationListener
from broker.metadata.config_store import ZnodeConfigStore
from broker.metadata.recursive import create_recursive, ensure_path
from broker.metadata.store import MetadataStore
from broker.metadata.zk_config_manager import ZkConfigManager
from broker.metadata.znodes.configs import ConfigChangeZnode, ConfigEntityZnode
from broker.model import Uuid
from tests.metadata.conftest import StoreMaker

PARENT = ConfigChangeZnode.PARENT


async def until(condition: Callable[[], object]) -> None:
    """Run the loop until the condition is true."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.005)


async def prepared(store: MetadataStore) -> DynamicConfig:
    await ensure_path(store, PARENT)
    return DynamicConfig(BrokerConfig.parse({}), broker_id=1)


async def write_topic(store: MetadataStore, topic: str, **config: str) -> None:
    """As topics are created: without a notification."""
    path = ConfigEntityZnode.path(EntityType.TOPIC, topic)
    data = ConfigEntityZnode.encode({key.replace("_", "."): v for key, v in config.items()})
    if await store.exists(path):
        await store.set(path, data)
    else:
        await create_recursive(store, path, data)


async def test_changes_of_topics_and_brokers_are_applied_on_notification(
    maker: StoreMaker, manual_clock: ManualClock
) -> None:
    async with maker.open() as store:
        dynamic = await prepared(store)
        watch = ZkConfigManager(store, dynamic, manual_clock)
        await watch.start()
        other = ZnodeConfigStore(store)
        await other.write(EntityType.TOPIC, "orders", {"retention.ms": "7"})
        await other.write(EntityType.BROKER, CLUSTER_DEFAULT, {"log.retention.ms": "8"})
        await other.write(EntityType.BROKER, "1", {"log.segment.bytes": "99999"})
        await until(lambda: dynamic.broker.log_segment_bytes == 99999)
        assert dynamic.topic("orders").retention_ms == 7
        assert dynamic.topic("others").retention_ms == 8
        await other.write(EntityType.TOPIC, "orders", {})
        await until(lambda: dynamic.topic("orders").retention_ms == 8)
        await watch.stop()


async def test_configs_written_before_the_start_are_applied_at_the_start(
    maker: StoreMaker, manual_clock: ManualClock
) -> None:
    async with maker.open() as store:
        dynamic = await prepared(store)
        await ZnodeConfigStore(store).write(EntityType.BROKER, "1", {"log.segment.bytes": "99999"})
        await write_topic(store, "orders", retention_ms="7")
        watch = ZkConfigManager(store, dynamic, manual_clock)
        await watch.start()
        assert dynamic.broker.log_segment_bytes == 99999
        assert dynamic.topic("orders").retention_ms == 7
        await watch.stop()


async def test_a_new_topic_has_its_own_configs_and_not_those_of_a_deleted_namesake(
    maker: StoreMaker, manual_clock: ManualClock
) -> None:
    async with maker.open() as store:
        dynamic = await prepared(store)
        watch = ZkConfigManager(store, dynamic, manual_clock)
        await watch.start()
        first, second = Uuid.random(), Uuid.random()
        await write_topic(store, "orders", retention_ms="7")
        await watch.on_topics({"orders": first})
        assert dynamic.topic("orders").retention_ms == 7
        await write_topic(store, "orders", segment_bytes="4096")
        await watch.on_topics({"orders": first})
        assert dynamic.topic("orders").retention_ms == 7, (
            "known: only a note makes it be read again"
        )
        await watch.on_topics({"orders": second})
        assert dynamic.of_topic("orders") == {"segment.bytes": "4096"}
        watch.on_topics_deleted(["orders"])
        assert dynamic.of_topic("orders") == {}
        await watch.stop()


async def test_notifications_are_processed_in_order_once_and_old_ones_deleted(
    maker: StoreMaker,
) -> None:
    async with maker.open() as store:
        await ensure_path(store, PARENT)
        before = await store.create(ConfigChangeZnode.PREFIX, b"before", sequence=True)
        clock = ManualClock(now_ms=0)
        followed: list[bytes | None] = []

        async def follow(data: bytes | None) -> None:
            followed.append(data)
            if data == b"bad":
                raise ValueError("cannot be read")

        notes = ChangeNotificationListener(store, PARENT, follow, clock)
        await notes.start()
        for data in (b"bad", b"good"):
            await store.create(ConfigChangeZnode.PREFIX, data, sequence=True)
        await until(lambda: len(followed) == 2)
        stat = await store.exists(before)
        assert stat is not None
        clock.advance(stat.ctime + 10 * EXPIRATION_MS)
        await store.create(ConfigChangeZnode.PREFIX, b"last", sequence=True)
        await until(lambda: len(followed) == 3)
        assert followed == [b"bad", b"good", b"last"]
        async with asyncio.timeout(10):
            while await store.exists(before):  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0.005)
        await notes.stop()
