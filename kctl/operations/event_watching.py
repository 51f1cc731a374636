"""Follows a cluster: reads its metadata periodically and reports what changed."""

import time
from collections.abc import Callable, Iterator
from threading import Event as Flag

from broker.net.client import Client
from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.admin.controllership import controllership_in
from kctl.admin.topics import find_topics
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.model.events import Event, EventKind, Snapshot
from kctl.plans.events import changes


def take_snapshot(session: Session, zookeeper: str | None) -> Snapshot:
    """The cluster now; CliError if it does not answer."""

    async def query(client: Client) -> Snapshot:
        cluster = await describe_cluster(client)
        return Snapshot(cluster, await find_topics(client), cluster.controller_epoch)

    found = ask(session, query)
    if zookeeper is None:
        return found
    epoch = controllership_in(zookeeper, session.timeout).epoch
    return Snapshot(found.cluster, found.topics, epoch)


def follow(
    session: Session,
    first: Snapshot,
    zookeeper: str | None,
    interval_s: float,
    interrupted: Flag,
    is_over: Callable[[], bool],
) -> Iterator[Event]:
    """Changes since `first`, as they are seen; a cluster that does not answer is one event."""
    before, is_reachable = first, True
    while not is_over():
        if interrupted.wait(interval_s):
            return
        started = time.monotonic()
        try:
            after = take_snapshot(session, zookeeper)
        except CliError as error:
            if is_reachable:
                yield Event(EventKind.UNREACHABLE, "cluster", detail=error.message)
            is_reachable = False
            interrupted.wait(max(0.0, interval_s - (time.monotonic() - started)))
            continue
        if not is_reachable:
            yield Event(EventKind.REACHABLE, "cluster")
            is_reachable = True
        yield from changes(before, after)
        before = after
