"""Topics of the cluster that a selection names."""

from collections.abc import Sequence

from kctl.admin.connection import ask
from kctl.admin.topics import find_topics, live_brokers
from kctl.cli.arguments.topics import Selection
from kctl.cli.errors import CliError
from kctl.cli.missing import no_such, no_such_broker
from kctl.cli.options import Session
from kctl.model.topics import Topic, TopicAssignment


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
    live = ask(session, live_brokers)
    if missing := {broker for replicas in assignment for broker in replicas} - live:
        raise no_such_broker(missing, live)
