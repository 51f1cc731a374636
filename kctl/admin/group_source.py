"""Storage of groups: coordinators, or ZooKeeper for old consumers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_changes import delete_groups
from kctl.admin.group_offsets import Offsets, Outcomes, commit_offsets, committed_offsets
from kctl.admin.groups import describe_groups, list_groups
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session
from kctl.model.groups import Group, GroupListing
from kctl.model.outcomes import Outcome

Answer = TypeVar("Answer")


class GroupSource(Protocol):
    """Operations on groups, independent of where they are stored."""

    async def listed(self, states: Sequence[str] = ()) -> list[GroupListing]:
        """All groups, or those in one of `states`."""
        ...

    async def described(self, names: Iterable[str]) -> list[Group]:
        """The groups sorted by name; unknown ones are Dead."""
        ...

    async def committed(self, names: Iterable[str]) -> dict[str, Offsets]:
        """Committed offsets by group; empty for a group without offsets."""
        ...

    async def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> Outcomes:
        """Commit offsets; the outcome of each partition."""
        ...

    async def deleted(self, names: Iterable[str]) -> list[Outcome]:
        """Delete groups without members; the outcome of each."""
        ...


class CoordinatedGroups:
    """Groups stored by their coordinators."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def listed(self, states: Sequence[str] = ()) -> list[GroupListing]:
        """All groups, or those in one of `states`."""
        return await list_groups(self._client, states)

    async def described(self, names: Iterable[str]) -> list[Group]:
        """The groups sorted by name; unknown ones are Dead."""
        return await describe_groups(self._client, names)

    async def committed(self, names: Iterable[str]) -> dict[str, Offsets]:
        """Committed offsets by group; empty for a group without offsets."""
        return await committed_offsets(self._client, names)

    async def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> Outcomes:
        """Commit offsets; the outcome of each partition."""
        return await commit_offsets(self._client, group, offsets)

    async def deleted(self, names: Iterable[str]) -> list[Outcome]:
        """Delete groups without members; the outcome of each."""
        return await delete_groups(self._client, names)


def ask_groups(
    session: Session,
    zookeeper: str | None,
    question: Callable[[GroupSource], Awaitable[Answer]],
    *,
    partial: bool = False,
    check: str = "",
) -> Answer:
    """Query groups without their logs: for groups in `zookeeper` no broker is needed.

    `partial` and `check` are those of `ask`.
    """
    if zookeeper is None:
        return ask(
            session,
            lambda client: question(CoordinatedGroups(client)),
            partial=partial,
            check=check,
        )
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
    *,
    partial: bool = False,
) -> Answer:
    """Query groups and the logs they read.

    For groups in `zookeeper`, the brokers are those registered there, unless bootstrap servers
    were given: the registered addresses may be unreachable from here.
    """
    if zookeeper is None:
        return ask(
            session, lambda client: question(client, CoordinatedGroups(client)), partial=partial
        )
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
            "specify one with -b HOST:PORT",
            ExitStatus.FAILED,
        )
    return ask(session, with_logs, partial=partial)
