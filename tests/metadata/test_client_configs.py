"""Configs of users, clients and addresses: which znodes they are, and when those are deleted."""

from broker.metadata.client_configs import ClientConfigStore
from broker.metadata.recursive import ensure_path, read_branch
from broker.metadata.store import MetadataStore
from tests.metadata.conftest import StoreMaker

RATE = {"producer_byte_rate": "1"}


async def opened(store: MetadataStore) -> ClientConfigStore:
    for path in ("/config/users", "/config/clients", "/config/ips", "/config/changes"):
        await ensure_path(store, path)
    return ClientConfigStore(store)


async def paths(store: MetadataStore) -> list[str]:
    """What is below /config/users, the parents included."""
    return [
        node.path.removeprefix("/config/") for node in await read_branch(store, "/config/users")
    ]


async def test_written_configs_are_read_by_entity_and_by_parent(maker: StoreMaker) -> None:
    async with maker.open() as store:
        configs = await opened(store)
        await configs.write("users/alice", RATE)
        await configs.write("users/bob/clients/c1", RATE)
        assert await configs.read("users/alice") == RATE
        assert await configs.read_all("users") == {"alice": RATE, "bob": {}}
        assert await configs.read_all("users/bob/clients") == {"c1": RATE}
        assert await configs.read("users/unknown") == {}
        assert await configs.read_all("users/alice/clients") == {}


async def test_entity_without_config_is_deleted_with_parents_that_only_it_needed(
    maker: StoreMaker,
) -> None:
    async with maker.open() as store:
        configs = await opened(store)
        await configs.write("users/bob/clients/c1", RATE)
        await configs.write("users/bob/clients/c1", {})
        assert await paths(store) == ["users"]


async def test_parents_with_config_or_other_children_stay(maker: StoreMaker) -> None:
    async with maker.open() as store:
        configs = await opened(store)
        for entity in ("users/alice", "users/alice/clients/c1", "users/alice/clients/c2"):
            await configs.write(entity, RATE)
        await configs.write("users/alice/clients/c1", {})
        assert "users/alice/clients/c2" in await paths(store)
        await configs.write("users/alice", {})
        assert "users/alice/clients/c2" in await paths(store)
        await configs.write("users/alice", RATE)
        await configs.write("users/alice/clients/c2", {})
        assert await paths(store) == ["users", "users/alice"]


async def test_every_write_leaves_a_notification(maker: StoreMaker) -> None:
    async with maker.open() as store:
        configs = await opened(store)
        await configs.write("users/alice", RATE)
        await configs.write("users/unknown/clients/c1", {})
        notes = await read_branch(store, "/config/changes")
        assert sorted(note.data or b"" for note in notes[1:]) == [
            b'{"version":2,"entity_path":"users/alice"}',
            b'{"version":2,"entity_path":"users/unknown/clients/c1"}',
        ]
