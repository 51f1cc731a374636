"""`kctl topics alter`: more partitions, other settings."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.configs import (
    Change,
    Config,
    Entity,
    EntityType,
    alter_configs,
    describe_configs,
)
from kctl.admin.connection import ask
from kctl.admin.topics import Assignment, Topic, add_partitions, find_topics
from kctl.commands.topic_change import ReplicaAssignment
from kctl.commands.topic_show import require_all_found
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.kafka_text.topics import error_line, missing_line
from kctl.options import KafkaText, Session, session_of
from kctl.outcomes import Outcome, show_outcomes
from kctl.plans.config_changes import change_rows, parse_changes
from kctl.tables import Column
from kctl.words.configs import parse_assignment, parse_pairs
from kctl.words.topics import KafkaTopic, Regex, TopicNames, require_some, select

COLUMNS = [Column("topic"), Column("config", "CHANGES"), Column("now"), Column("then")]


def alter(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    partitions: Annotated[
        int | None,
        typer.Option("-p", "--partitions", help="How many partitions in all.", min=1),
    ] = None,
    replica_assignment: ReplicaAssignment = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("-c", "--config", metavar="KEY=VALUE", help="Set; can be given again."),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Back to the default; can be given again."),
    ] = None,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="A topic that is not there is no failure.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    kafka_topic: KafkaTopic = None,
) -> ExitStatus | None:
    """Add partitions to topics, and change their settings.

    Keys hash to other partitions once there are more of them, and there is no way back.
    """
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=kafka_topic)
    require_some(wanted)
    assignment = parse_assignment(replica_assignment) if replica_assignment else None
    count = partitions or (len(assignment) if assignment else None)
    changes = parse_changes(set_pairs=parse_pairs(configs or ()), deleted=delete_config or ())
    if not (count or changes):
        raise CliError(
            "nothing to change", "say --partitions, --config or --delete-config", ExitStatus.USAGE
        )
    found = ask(session, lambda client: find_topics(client, wanted.exact_names))
    chosen = set(wanted.pick(topic.name for topic in found))
    topics = [topic for topic in found if topic.name in chosen]
    if text_format and not (topics or if_exists):
        session.out.lines([missing_line(kafka_topic or ",".join(names or ()))])
        return ExitStatus.FAILED
    if not if_exists:
        require_all_found(wanted, topics)
    if not topics:
        session.out.note("there is nothing to alter")
        return None
    work = _Work(topics, count, assignment, changes)
    if dry_run:
        _fail_if_refused(work.run(session, validate_only=True))
    if not agreed(session, work.plan(session), yes=yes, dry_run=dry_run):
        return None
    return _show(session, work.run(session), as_kafka=bool(text_format))


class _Work:
    """The changes of one run."""

    def __init__(
        self,
        topics: Sequence[Topic],
        count: int | None,
        assignment: Assignment | None,
        changes: Sequence[Change],
    ) -> None:
        self._topics = topics
        self._count = count
        self._assignment = assignment
        self._changes = changes
        self._entities = [Entity(EntityType.TOPICS, topic.name) for topic in topics]

    def plan(self, session: Session) -> Plan:
        """What it will look like afterwards."""
        configs = ask(session, lambda client: describe_configs(client, self._entities))
        rows = [
            row
            for topic, entity in zip(self._topics, self._entities, strict=True)
            for row in self._rows(topic, entity, configs[entity])
        ]
        only_one = len(self._topics) == 1
        what = f"topic {self._topics[0].name}" if only_one else f"{len(self._topics)} topics"
        return Plan(f"Alter {what}?", rows, COLUMNS, "topic")

    def run(self, session: Session, *, validate_only: bool = False) -> list[Outcome]:
        """Make the changes, or let the brokers check them; what became of each topic."""

        async def question(client: Client) -> list[Outcome]:
            outcomes: list[Outcome] = []
            if self._count:
                outcomes += await add_partitions(
                    client,
                    self._topics,
                    self._count,
                    self._assignment,
                    timeout_s=session.timeout,
                    validate_only=validate_only,
                )
            if self._changes:
                changes = dict.fromkeys(self._entities, self._changes)
                outcomes += await alter_configs(client, changes, validate_only=validate_only)
            return outcomes

        return _one_per_topic(ask(session, question))

    def _rows(
        self, topic: Topic, entity: Entity, configs: Sequence[Config]
    ) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        if self._count:
            rows.append({"config": "partitions", "now": len(topic.partitions), "then": self._count})
        rows += change_rows(entity, configs, self._changes)
        return [{"topic": topic.name, **row} for row in rows]


def _one_per_topic(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Of a topic whose partitions and settings were both changed, the one that failed."""
    by_name: dict[str, Outcome] = {}
    for one in outcomes:
        name = one.name.removeprefix("topic ")
        if name not in by_name or one.error:
            by_name[name] = Outcome(name, one.error, one.message)
    return list(by_name.values())


def _fail_if_refused(outcomes: Sequence[Outcome]) -> None:
    for one in outcomes:
        if one.error:
            raise CliError(f"topic {one.name}: {one.reason}")


def _show(session: Session, outcomes: Sequence[Outcome], *, as_kafka: bool) -> ExitStatus | None:
    if not as_kafka:
        show_outcomes(session.out, outcomes, "topic", "altered")
        return None
    failed = [one for one in outcomes if one.error]
    session.out.lines(error_line(one.message or one.error.name) for one in failed[:1])
    return ExitStatus.FAILED if failed else ExitStatus.OK
