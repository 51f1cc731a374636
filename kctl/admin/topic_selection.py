"""Topics of the cluster that a selection names."""

from collections.abc import Sequence

from kctl.admin.connection import ask
from kctl.admin.topics import find_topics
from kctl.cli.arguments.topics import Selection
from kctl.cli.missing import no_such
from kctl.cli.options import Session
from kctl.model.topics import Topic


def require_all_found(
    wanted: Selection, topics: Sequence[Topic], session: Session | None = None
) -> None:
    """CliError if the selection names topics that do not exist.

    With a session, all topics are queried for suggestions; `topics` may be those selected by name
    only.
    """
    if missing := wanted.missing(topic.name for topic in topics):
        there = ask(session, find_topics) if session else topics
        raise no_such("topic", missing, [topic.name for topic in there])


def pick_topics(topics: Sequence[Topic], wanted: Selection) -> list[Topic]:
    """The topics that the selection names."""
    meant = set(wanted.pick(topic.name for topic in topics))
    return [topic for topic in topics if topic.name in meant]
