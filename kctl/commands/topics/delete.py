"""`kctl topics delete`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.errors import ApiError
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.group_offsets import committed_offsets
from kctl.admin.groups import list_groups
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.admin.topic_selection import require_all_found
from kctl.admin.topics import delete_topics, find_topics
from kctl.cli.arguments.topics import (
    INTERNAL_TOPICS,
    KafkaTopic,
    Regex,
    Selection,
    TopicNames,
    require_some,
    select,
)
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import ExitStatus
from kctl.cli.options import KafkaText, Session, session_of
from kctl.model.outcomes import Outcome
from kctl.model.topics import Topic
from kctl.views.kafka_text.topics import error_line, missing_line
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.topics import DELETION_COLUMNS, deletion_rows

Contents = tuple[dict[str, int], dict[str, int]]
"""Records and bytes by topic."""


def delete(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Do not fail if a topic does not exist.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    kafka_topic: KafkaTopic = None,
) -> ExitStatus | None:
    """Delete topics and all their records.

    Internal topics are deleted only if they are named exactly: patterns do not match them.
    """
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=kafka_topic)
    require_some(wanted)
    found = ask(session, lambda client: find_topics(client, wanted.exact_names))
    topics = [topic for topic in found if topic.name in _deletable(wanted, found)]
    if text_format and not (topics or if_exists):
        session.out.lines([missing_line(kafka_topic or ",".join(names or ()))])
        return ExitStatus.FAILED
    if not if_exists:
        require_all_found(wanted, topics, session)
    if not topics:
        session.out.nothing("nothing to delete")
        return None
    # With --yes no preview is shown: groups need a request to every broker.
    plan = _deletion_plan(session, topics, with_groups=dry_run or not yes)
    if confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        chosen = [topic.name for topic in topics]
        outcomes = ask(
            session,
            lambda client: delete_topics(client, chosen, timeout_s=session.timeout),
            check="kctl topics list",
        )
        return _show_deleted(session, outcomes, as_kafka=bool(text_format))
    return None


def _deletable(wanted: Selection, found: Sequence[Topic]) -> set[str]:
    meant = set(wanted.pick(topic.name for topic in found))
    return meant - (INTERNAL_TOPICS - set(wanted.names))


def _deletion_plan(session: Session, topics: Sequence[Topic], *, with_groups: bool) -> Plan:
    before = dict(session.unanswered)

    async def query(client: Client) -> tuple[Contents, dict[str, list[str]] | None]:
        contents = await _contents(client, topics)
        try:
            return contents, await _groups(client, topics) if with_groups else None
        except ApiError as error:  # DELETE on a topic does not include DESCRIBE on groups
            session.out.note(f"the groups that read the topics are unknown: {error.code.name}")
            return contents, None

    (records, sizes), groups = ask(session, query, partial=True)
    for message in session.unanswered.items() - before.items():
        session.out.note(f"{message[1]}: its records, bytes and groups are not included")
    session.unanswered = before  # the deletion does not need these brokers
    rows = deletion_rows(topics, records, sizes, groups)
    count = f"topic {topics[0].name}" if len(topics) == 1 else f"{len(topics)} topics"
    return Plan(f"Delete {count}?", rows, DELETION_COLUMNS, "topic", outcome_columns("topic"))


async def _contents(client: Client, topics: Sequence[Topic]) -> Contents:
    """Records and bytes of each topic, as far as the brokers answer."""
    records = await _records(client, topics)
    sizes = {topic.name: 0 for topic in topics}
    for log_dir in await describe_log_dirs(client, topics=topics):
        for replica in log_dir.replicas:
            sizes[replica.partition.topic] += replica.size_bytes
    return records, sizes


async def _groups(client: Client, topics: Sequence[Topic]) -> dict[str, list[str]]:
    """The groups with committed offsets in each topic, as far as their coordinators answer."""
    listed = await list_groups(client)
    committed = await committed_offsets(client, (group.group_id for group in listed))
    return {
        topic.name: sorted(
            group
            for group, offsets in committed.items()
            if any(partition.topic == topic.name for partition in offsets)
        )
        for topic in topics
    }


async def _records(client: Client, topics: Sequence[Topic]) -> dict[str, int]:
    """Approximate number of records of each topic: offsets removed by compaction count, too."""
    partitions = [TopicPartition(topic.name, p.id) for topic in topics for p in topic.partitions]
    starts, ends = await log_starts(client, partitions), await log_ends(client, partitions)
    counts = {topic.name: 0 for topic in topics}
    for partition in starts.keys() & ends.keys():
        counts[partition.topic] += ends[partition] - starts[partition]
    return counts


def _show_deleted(
    session: Session, outcomes: Sequence[Outcome], *, as_kafka: bool
) -> ExitStatus | None:
    if not as_kafka:
        show_outcomes(session.out, outcomes, "topic", "deleted")
        return None
    failed = [one for one in outcomes if one.error]
    session.out.lines(error_line(one.message or one.error.name) for one in failed[:1])
    return ExitStatus.FAILED if failed else ExitStatus.OK
