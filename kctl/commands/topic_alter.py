"""`kctl topics alter`: more partitions, other settings, more or fewer replicas."""

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
from kctl.commands.topic_change import ReplicaAssignment, ReplicationFactor
from kctl.commands.topic_show import require_all_found
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.kafka_text.topics import error_line, missing_line
from kctl.options import KafkaText, Session, session_of
from kctl.outcomes import Outcome, show_outcomes
from kctl.plans.config_changes import change_rows, parse_changes
from kctl.tables import Column
from kctl.words.configs import parse_assignment, parse_pairs
from kctl.words.partitions import usage_error
from kctl.words.topics import KafkaTopic, Regex, Selection, TopicNames, require_some, select

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
    replication_factor: ReplicationFactor = None,
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
    """Add partitions to topics, change their settings, or the number of their replicas.

    Keys hash to other partitions once there are more of them, and there is no way back. Replicas
    are moved as by `kctl reassign run`, which can also throttle them.
    """
    session = session_of(ctx)
    wanted = select(names, regex=regex, kafka_topic=kafka_topic)
    require_some(wanted)
    assignment = parse_assignment(replica_assignment) if replica_assignment else None
    count = partitions or (len(assignment) if assignment else None)
    changes = parse_changes(set_pairs=parse_pairs(configs or ()), deleted=delete_config or ())
    _require_one_kind(bool(count or changes), replication_factor, as_kafka=bool(text_format))
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
    if replication_factor:
        return _change_replicas(session, topics, replication_factor, yes=yes, dry_run=dry_run)
    work = _Work(topics, count, assignment, changes)
    if dry_run:
        _fail_if_refused(work.run(session, validate_only=True))
    if not agreed(session, work.plan(session), yes=yes, dry_run=dry_run):
        return None
    return _show(session, work.run(session), as_kafka=bool(text_format))


def _require_one_kind(others: bool, replication_factor: int | None, *, as_kafka: bool) -> None:
    """CliError unless there is something to change, and replicas by themselves."""
    if not (others or replication_factor):
        raise usage_error(
            "nothing to change",
            "say --partitions, --replication-factor, --config or --delete-config",
        )
    if replication_factor and (others or as_kafka):
        raise usage_error(
            "--replication-factor goes by itself", "change the rest before or afterwards"
        )


def _change_replicas(
    session: Session, topics: Sequence[Topic], factor: int, *, yes: bool, dry_run: bool
) -> ExitStatus | None:
    # Only here: moving replicas needs much that the other changes do not.
    from kctl.commands.reassign_change import move_plan
    from kctl.commands.reassign_runner import RunOptions, carry_out
    from kctl.commands.reassign_words import propose
    from kctl.plans.reassign_goals import Goals

    names = Selection(tuple(topic.name for topic in topics))
    proposal = propose(session, names, Goals(replication_factor=factor))
    if not proposal.changes:
        session.out.note("nothing has to move")
        return None
    if not agreed(session, move_plan(session, proposal), yes=yes, dry_run=dry_run):
        return None
    return carry_out(session, proposal, RunOptions())


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
