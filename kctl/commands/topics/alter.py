"""`kctl topics alter`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.configs import alter_configs, describe_configs
from kctl.admin.connection import ask
from kctl.admin.topic_selection import require_all_found, require_brokers
from kctl.admin.topics import add_partitions, find_topics
from kctl.cli.arguments.amounts import MAX_PARTITIONS, parse_rate
from kctl.cli.arguments.configs import parse_assignment, parse_changes, parse_pairs
from kctl.cli.arguments.topics import KafkaTopic, Regex, Selection, TopicNames, require_some, select
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.options import KafkaText, Session, session_of
from kctl.commands.topics.create import ReplicaAssignment, ReplicationFactor
from kctl.model.configs import Change, Entity, EntityType
from kctl.model.outcomes import Outcome
from kctl.model.topics import Topic, TopicAssignment
from kctl.views.kafka_text.topics import error_line, missing_line
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.topics import ALTERATION_COLUMNS, alteration_rows


def alter(
    ctx: typer.Context,
    names: TopicNames = None,
    regex: Regex = False,
    partitions: Annotated[
        int | None,
        typer.Option(
            "-p", "--partitions", help="New number of partitions.", min=1, max=MAX_PARTITIONS
        ),
    ] = None,
    replica_assignment: ReplicaAssignment = None,
    replication_factor: ReplicationFactor = None,
    throttle: Annotated[
        str | None,
        typer.Option(
            "--throttle",
            metavar="RATE",
            help="With --replication-factor: throttle of each broker in bytes per second, e.g. "
            "50MB.",
        ),
    ] = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("-c", "--config", metavar="KEY=VALUE", help="Set a config; can be repeated."),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Remove a config of the topic; can be repeated."),
    ] = None,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Do not fail if a topic does not exist.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    kafka_topic: KafkaTopic = None,
) -> ExitStatus | None:
    """Add partitions, or change configs or the replication factor.

    With more partitions, keys map to other partitions than before, and partitions cannot be
    removed. The replication factor is changed by a reassignment; --throttle limits its rate.
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
        session.out.nothing("nothing to alter")
        return None
    if replication_factor:
        rate = parse_rate(throttle, "--throttle") if throttle else None
        return _change_replicas(session, topics, replication_factor, rate, yes=yes, dry_run=dry_run)
    if throttle:
        raise usage_error("--throttle requires --replication-factor", "omit it")
    if assignment and not text_format:
        require_brokers(session, assignment)
    work = _Work(topics, count, assignment, changes)
    if dry_run:
        _fail_if_refused(work.run(session, validate_only=True))
    if not confirm_plan(session, work.plan(session), yes=yes, dry_run=dry_run):
        return None
    return _show(session, work.run(session), as_kafka=bool(text_format))


def _require_one_kind(others: bool, replication_factor: int | None, *, as_kafka: bool) -> None:
    """CliError unless there is something to change, and the replication factor alone."""
    if not (others or replication_factor):
        raise usage_error(
            "nothing to change",
            "use --partitions, --replication-factor, --config or --delete-config",
        )
    if replication_factor and (others or as_kafka):
        raise usage_error(
            "--replication-factor cannot be combined with other changes",
            "make the other changes in a separate command",
        )


def _change_replicas(
    session: Session,
    topics: Sequence[Topic],
    factor: int,
    rate: int | None,
    *,
    yes: bool,
    dry_run: bool,
) -> ExitStatus | None:
    # Imported here: other changes do not need reassignments.
    from kctl.commands.reassign.preview import move_plan
    from kctl.operations.reassignment.proposals import propose
    from kctl.operations.reassignment.runner import RunOptions, run_reassignment
    from kctl.plans.reassignment.goals import Goals
    from kctl.views.reassignments import RESULT_COLUMNS

    names = Selection(tuple(topic.name for topic in topics))
    proposal = propose(session, names, Goals(replication_factor=factor))
    if not proposal.changes:
        session.out.nothing("nothing to reassign")
        return None
    plan = move_plan(session, proposal, RESULT_COLUMNS)
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return None
    return run_reassignment(session, proposal, RunOptions(rate))


class _Work:
    """The changes of one run."""

    def __init__(
        self,
        topics: Sequence[Topic],
        count: int | None,
        assignment: TopicAssignment | None,
        changes: Sequence[Change],
    ) -> None:
        self._topics = topics
        self._count = count
        self._assignment = assignment
        self._changes = changes
        self._entities = [Entity(EntityType.TOPICS, topic.name) for topic in topics]

    def plan(self, session: Session) -> Plan:
        """The plan shown to the user."""
        configs = ask(session, lambda client: describe_configs(client, self._entities))
        rows = [
            row
            for topic, entity in zip(self._topics, self._entities, strict=True)
            for row in alteration_rows(topic, self._count, entity, configs[entity], self._changes)
        ]
        only_one = len(self._topics) == 1
        what = f"topic {self._topics[0].name}" if only_one else f"{len(self._topics)} topics"
        return Plan(f"Alter {what}?", rows, ALTERATION_COLUMNS, "topic", outcome_columns("topic"))

    def run(self, session: Session, *, validate_only: bool = False) -> list[Outcome]:
        """Make the changes, or let the brokers validate them; the outcome of each topic."""

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

        check = "" if validate_only else "kctl topics describe"
        return _one_per_topic(ask(session, question, check=check))


def _one_per_topic(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """One outcome per topic: a failed one if partitions and configs were both changed."""
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
