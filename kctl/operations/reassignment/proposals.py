"""Proposed reassignments: planned from goals, or read from a plan file."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.reassignments import find_layout
from kctl.admin.topic_selection import require_all_found
from kctl.admin.topics import find_topics
from kctl.cli.arguments.topics import Selection
from kctl.cli.errors import CliError, usage_error
from kctl.cli.options import Session
from kctl.model.assignments import Assignment, Layout
from kctl.model.reassignments import Reassignments
from kctl.plans.reassignment.goals import Goals, Unplannable, allowed_brokers, plan_reassignment
from kctl.views.quantities import plural


class MissingPartition(CliError):
    """A plan names a topic or a partition that does not exist."""


@dataclass(frozen=True)
class Proposal:
    """A plan, the layout it is based on, and the brokers it may use."""

    layout: Layout
    changes: Assignment
    allowed: frozenset[int]


def propose(session: Session, wanted: Selection, goals: Goals) -> Proposal:
    """The plan that meets the goals for these topics; CliError if no plan can."""
    if goals.is_nothing:
        raise usage_error(
            "no goal specified",
            "--drain, --add-brokers, --brokers, --replication-factor, --rack-aware or --balance",
        )
    if goals.replication_factor and wanted.is_everything:
        raise usage_error(
            "--replication-factor requires topics", "name them, or use '.*' --regex for all topics"
        )
    layout = ask(session, lambda client: _selected_layout(client, wanted))
    _warn_of_absent(session, layout, goals.drain)
    try:
        changes = plan_reassignment(layout, goals)
        return Proposal(layout, changes, allowed_brokers(layout, goals))
    except Unplannable as error:
        raise CliError(str(error), error.hint) from error


def _warn_of_absent(session: Session, layout: Layout, drained: frozenset[int]) -> None:
    """Warn of drained brokers that are unknown: draining one twice is fine, a typo is not."""
    placed = {broker for replicas in layout.replicas.values() for broker in replicas}
    if absent := sorted(drained - placed - layout.brokers.keys()):
        listed = ", ".join(map(str, absent))
        session.out.note(f"--drain {listed}: not running, and without replicas of these topics")


def proposal_of_file(session: Session, wanted: Assignment) -> Proposal:
    """The plan of a file; CliError, with the text and in the order of Kafka's tool, if it names
    brokers, topics or partitions that do not exist.
    """

    async def query(client: Client) -> Layout:
        names = {partition.topic for partition in wanted}
        return await find_layout(client, await find_topics(client, names))

    layout = ask(session, query)
    named = {broker for replicas in wanted.values() for broker in replicas}
    if unknown := sorted(named - layout.brokers.keys()):
        raise CliError(f"Unknown broker id {unknown[0]}", "kctl brokers list shows the ids")
    present = {partition.topic for partition in layout.replicas}
    if missing := [partition for partition in sorted(wanted) if partition not in layout.replicas]:
        gone = [partition.topic for partition in missing if partition.topic not in present]
        what = f"Topic {gone[0]} not found." if gone else _missing_partitions(missing)
        raise MissingPartition(what, "kctl topics describe shows the partitions")
    return Proposal(layout, wanted, frozenset(layout.brokers))


def _missing_partitions(missing: Sequence[TopicPartition]) -> str:
    return f"Unable to find partition: {', '.join(map(str, missing))}"


async def _selected_layout(client: Client, wanted: Selection) -> Layout:
    found = await find_topics(client, wanted.exact_names)
    chosen = set(wanted.pick(topic.name for topic in found))
    topics = [topic for topic in found if topic.name in chosen]
    require_all_found(wanted, topics)
    return await find_layout(client, topics)


def already_in_progress(in_progress: Reassignments) -> CliError:
    """The refusal to start while other reassignments are in progress."""
    count = plural(len(in_progress), "reassignment")
    return CliError(
        f"{count} already in progress: nothing was changed",
        "kctl reassign list shows them; --additional starts anyway",
    )


def nothing_to_do(proposal: Proposal) -> str:
    """`nothing to reassign`, and which goal would change something."""
    counts = dict.fromkeys(sorted(proposal.allowed), 0)
    for replicas in proposal.layout.replicas.values():
        for broker in replicas:
            if broker in counts:
                counts[broker] += 1
    empty = [broker for broker, count in counts.items() if not count]
    if empty and any(counts.values()):
        ids = ",".join(map(str, empty))
        return f"nothing to reassign; --add-brokers {ids} would give {ids} a share of the replicas"
    if counts and max(counts.values()) - min(counts.values()) > 1:
        most, least = max(counts.values()), min(counts.values())
        return (
            f"nothing to reassign; --balance count would even out {least} to {most} replicas per"
            " broker"
        )
    return "nothing to reassign"
