"""Where groups are kept: at their coordinators, or, those of old consumers, in ZooKeeper."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_changes import delete_groups
from kctl.admin.group_offsets import Offsets, Outcomes, commit_offsets, committed_offsets
from kctl.admin.groups import Group, GroupListing, describe_groups, list_groups
from kctl.errors import CliError, ExitStatus
from kctl.options import Session
from kctl.outcomes import Outcome

Answer = TypeVar("Answer")


class GroupSource(Protocol):
    """What can be asked and changed, whoever keeps the groups."""

    async def listed(self, states: Sequence[str] = ()) -> list[GroupListing]:
        """All groups; `states` leaves out the others."""
        ...

    async def described(self, names: Iterable[str]) -> list[Group]:
        """The groups in the order of their names; one that is not there is Dead."""
        ...

    async def committed(self, names: Iterable[str]) -> dict[str, Offsets]:
        """The offsets of each group; a group that has none has an empty map."""
        ...

    async def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> Outcomes:
        """Store offsets; what became of each."""
        ...

    async def deleted(self, names: Iterable[str]) -> list[Outcome]:
        """Delete groups that have no members; what became of each."""
        ...


class CoordinatedGroups:
    """Groups as their coordinators keep them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def listed(self, states: Sequence[str] = ()) -> list[GroupListing]:
        """All groups; `states` leaves out the others."""
        return await list_groups(self._client, states)

    async def described(self, names: Iterable[str]) -> list[Group]:
        """The groups in the order of their names; one that is not there is Dead."""
        return await describe_groups(self._client, names)

    async def committed(self, names: Iterable[str]) -> dict[str, Offsets]:
        """The offsets of each group; a group that has none has an empty map."""
        return await committed_offsets(self._client, names)

    async def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> Outcomes:
        """Store offsets; what became of each."""
        return await commit_offsets(self._client, group, offsets)

    async def deleted(self, names: Iterable[str]) -> list[Outcome]:
        """Delete groups that have no members; what became of each."""
        return await delete_groups(self._client, names)


def ask_groups(
    session: Session,
    zookeeper: str | None,
    question: Callable[[GroupSource], Awaitable[Answer]],
) -> Answer:
    """Ask about groups alone: of those in `zookeeper` no broker is needed."""
    if zookeeper is None:
        return ask(session, lambda client: question(CoordinatedGroups(client)))
    from kctl.admin.metadata_place import zookeeper_place  # kazoo is slow to import
    from kctl.admin.old_groups import OldGroups

    async def in_zookeeper() -> Answer:
        async with zookeeper_place(zookeeper, session.timeout).opened(create=False) as store:
            return await question(OldGroups(store))

    return asyncio.run(in_zookeeper())


def ask_groups_and_logs(
    session: Session,
    zookeeper: str | None,
    question: Callable[[Client, GroupSource], Awaitable[Answer]],
) -> Answer:
    """Ask about groups and the logs they read; the brokers are those that ZooKeeper knows.

    Unless others were named with -b or in the environment: ZooKeeper may know brokers by
    addresses that cannot be reached from here.
    """
    if zookeeper is None:
        return ask(session, lambda client: question(client, CoordinatedGroups(client)))
    from kctl.admin.metadata_place import zookeeper_place
    from kctl.admin.old_groups import OldGroups, registered_brokers

    place = zookeeper_place(zookeeper, session.timeout)
    protocol = session.security.protocol if session.security else "PLAINTEXT"

    async def brokers() -> list[str]:
        async with place.opened(create=False) as store:
            return await registered_brokers(store, protocol)

    async def with_logs(client: Client) -> Answer:
        async with place.opened(create=False) as store:
            return await question(client, OldGroups(store))

    if not session.bootstrap_server:
        session.bootstrap_server = ",".join(asyncio.run(brokers())) or None
    if not session.bootstrap_server:
        raise CliError(
            f"no broker with a {protocol} listener is registered at {zookeeper}",
            "name one with -b HOST:PORT",
            ExitStatus.FAILED,
        )
    return ask(session, with_logs)
