"""Topics of the cluster that a selection names."""

import asyncio
from collections.abc import Sequence

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.topics import find_topics, live_brokers
from kctl.cli.arguments.topics import Selection
from kctl.cli.errors import CliError
from kctl.cli.missing import no_such, no_such_broker
from kctl.cli.options import Session
from kctl.model.topics import Topic, TopicAssignment

NEWCOMERS_S = 3.0
"""How long a broker that just started may be unknown to the others."""


def require_all_found(
    wanted: Selection, topics: Sequence[Topic], session: Session | None = None
) -> None:
    """CliError if the selection names topics that do not exist.

    With a session, all topics are queried for suggestions; `topics` may be those selected by name
    only.
    """
    if missing := wanted.missing(topic.name for topic in topics):
        unfit = [name for name in missing if name not in wanted.names]
        if len(unfit) == len(missing):
            shown = " or ".join(map(repr, unfit))
            raise CliError(f"no topic matches {shown}", "kctl topics list shows the topics")
        there = ask(session, find_topics) if session else topics
        raise no_such("topic", missing, [topic.name for topic in there])


def pick_topics(topics: Sequence[Topic], wanted: Selection) -> list[Topic]:
    """The topics that the selection names."""
    meant = set(wanted.pick(topic.name for topic in topics))
    return [topic for topic in topics if topic.name in meant]


def require_brokers(session: Session, assignment: TopicAssignment) -> None:
    """CliError if a replica is assigned to a broker that is not in the cluster.

    Kafka would create a topic that can be neither listed nor deleted.
    """
    wanted = {broker for replicas in assignment for broker in replicas}
    live = ask(session, lambda client: _live_among(client, wanted, session.timeout / 3))
    if missing := wanted - live:
        raise no_such_broker(missing, live)


async def _live_among(client: Client, wanted: set[int], patience_s: float) -> frozenset[int]:
    """The live brokers; waits for those that have just started, which not all brokers know yet."""
    live = await live_brokers(client)
    deadline_s = asyncio.get_running_loop().time() + min(patience_s, NEWCOMERS_S)
    while wanted - live and asyncio.get_running_loop().time() < deadline_s:
        await asyncio.sleep(0.2)
        live = await live_brokers(client)
    return live
