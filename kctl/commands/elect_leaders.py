"""`kctl elect-leaders`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.elect_leaders import elect_leaders
from kctl.admin.topics import find_topics, live_brokers
from kctl.cli.arguments.files import read_text
from kctl.cli.arguments.partitions import PartitionChoice, PartitionRule, compiled, parse_partitions
from kctl.cli.arguments.plan_files import parse_elections
from kctl.cli.arguments.topics import KAFKA_PANEL, Regex
from kctl.cli.command_tree import command, lone_command
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.interrupts import ctrl_c_noted
from kctl.cli.missing import no_such, no_such_broker
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.tables import partition_name
from kctl.model.elections import Candidate, Election, ElectionType
from kctl.model.outcomes import Outcome
from kctl.model.topics import Topic
from kctl.plans.elections import candidates_of
from kctl.views.elections import COLUMNS, candidate_row
from kctl.views.kafka_text.elections import election_lines, failure_message
from kctl.views.outcomes import outcome_columns, show_outcomes

RESULTS = outcome_columns("partition")

app = lone_command()


@dataclass(frozen=True)
class Choice:
    """The selected partitions: by rules, listed, or all."""

    rules: tuple[PartitionRule, ...] = ()
    exact: tuple[TopicPartition, ...] = ()
    broker: int | None = None

    def pick(self, topics: Sequence[Topic]) -> list[Topic]:
        """The topics, reduced to the selected partitions."""
        every = [TopicPartition(t.name, p.id) for t in topics for p in t.partitions]
        if self.exact:
            meant = set(self.exact)
        elif self.rules:
            meant = set(PartitionChoice(self.rules).pick(every))
        else:
            meant = set(every)
        return [
            Topic(
                t.name,
                t.topic_id,
                t.is_internal,
                tuple(p for p in t.partitions if (t.name, p.id) in meant),
            )
            for t in topics
        ]


@command(
    app,
    "elect-leaders",
    examples=[
        "kctl elect-leaders orders --yes",
        "kctl elect-leaders orders:0,2 payments --dry-run",
        "kctl elect-leaders 'orders.*' --regex --yes",
        "kctl elect-leaders --broker 1 --batch-size 50 --pause 5 --yes",
        "kctl elect-leaders --all --election-type unclean --dry-run",
        "kctl elect-leaders --all --format kafka --yes",
    ],
)
def elect(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC[:PARTITION,…]…",
            help="Topics, or some of their partitions.",
            show_default=False,
        ),
    ] = None,
    regex: Regex = False,
    election_type: Annotated[
        ElectionType,
        typer.Option(
            "--election-type",
            metavar="TYPE",
            help="preferred (the first replica) or unclean (any live replica, if there is no "
            "leader).",
        ),
    ] = ElectionType.PREFERRED,
    broker: Annotated[
        int | None,
        typer.Option(
            "--broker",
            metavar="ID",
            help="Only partitions whose preferred leader is this broker (unclean: with a "
            "replica on it).",
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", "--all-topic-partitions", help="All partitions that need an election."
        ),
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "--path-to-json-file", metavar="FILE", help="Partitions in a JSON file."
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option("--batch-size", min=1, help="Partitions per batch (default: all at once)."),
    ] = None,
    pause: Annotated[
        float,
        typer.Option(
            "--pause",
            metavar="SECONDS",
            min=0,
            max=86_400,
            help="Pause between batches, in seconds.",
        ),
    ] = 0.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    kafka_topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            metavar="NAME",
            help="With --partition, same as TOPIC:PARTITION.",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
    kafka_partition: Annotated[
        int | None,
        typer.Option("--partition", metavar="N", help="See --topic.", rich_help_panel=KAFKA_PANEL),
    ] = None,
) -> ExitStatus | None:
    """Trigger preferred or unclean leader elections.

    After a broker restart other brokers lead its partitions; a preferred election moves leadership
    back. An unclean election makes a live out-of-sync replica the leader, and records it has missed
    are lost: only for partitions that would otherwise stay offline.
    """
    session = session_of(ctx)
    named = list(words or ())
    if kafka_topic is not None:
        named.append(kafka_topic if kafka_partition is None else f"{kafka_topic}:{kafka_partition}")
    if sum([bool(named), file is not None, everything or broker is not None]) != 1:
        raise usage_error("no partition specified", "name topics, or use --all, --broker or --file")
    choice = _choice(named, file, broker, regex=regex)
    if text_format and broker is not None:
        raise usage_error("--broker cannot be combined with --format kafka", "omit --format")
    if text_format:
        return _as_kafka(session, election_type, named, choice, yes=yes, dry_run=dry_run)
    candidates = _candidates(session, election_type, choice, named if not regex else [])
    if not candidates:
        session.out.nothing("no election is needed")
        return None
    if not confirm_plan(session, _plan(election_type, candidates), yes=yes, dry_run=dry_run):
        return None
    partitions = [candidate.partition for candidate in candidates]
    elections = _in_batches(session, election_type, partitions, batch_size, pause)
    show_outcomes(
        session.out,
        [_needless_is_fine(one) for _, one in sorted(elections, key=lambda pair: pair[0])],
        "partition",
        "elected",
    )
    return None if len(elections) == len(partitions) else ExitStatus.INTERRUPTED


def _choice(named: Sequence[str], file: Path | None, broker: int | None, *, regex: bool) -> Choice:
    if file is not None:
        return Choice(exact=tuple(parse_elections(read_text(file), str(file))))
    if regex:
        return Choice(rules=tuple(_fits(compiled(word)) for word in named))
    return Choice(rules=parse_partitions(named), broker=broker)


def _fits(pattern: re.Pattern[str]) -> PartitionRule:
    return lambda partition: bool(pattern.fullmatch(partition.topic))


def _candidates(
    session: Session, election_type: ElectionType, choice: Choice, named: Sequence[str]
) -> list[Candidate]:
    async def question(client: Client) -> tuple[list[Topic], frozenset[int]]:
        return await find_topics(client), await live_brokers(client)

    topics, alive = ask(session, question)
    there = {topic.name for topic in topics}
    wanted = [word.partition(":")[0] for word in named] + [tp.topic for tp in choice.exact]
    if missing := sorted(set(wanted) - there):
        raise no_such("topic", missing, there)
    _require_partitions(topics, [*_named_partitions(named), *choice.exact])
    holding = {b for topic in topics for p in topic.partitions for b in p.replicas} | alive
    if choice.broker is not None and choice.broker not in holding:
        raise no_such_broker([choice.broker], alive)
    return candidates_of(choice.pick(topics), election_type, alive, choice.broker)


def _named_partitions(named: Sequence[str]) -> list[TopicPartition]:
    """The partitions that are named one by one: `orders:0,1`."""
    return [
        TopicPartition(topic, int(number))
        for topic, _, numbers in (word.partition(":") for word in named)
        for number in numbers.split(",")
        if number
    ]


def _require_partitions(topics: Sequence[Topic], wanted: Sequence[TopicPartition]) -> None:
    counts = {topic.name: len(topic.partitions) for topic in topics}
    for place in wanted:
        if place.partition >= counts[place.topic]:
            raise CliError(
                f"{place.topic} has no partition {place.partition}",
                f"it has 0 to {counts[place.topic] - 1}",
            )


def _plan(election_type: ElectionType, candidates: Sequence[Candidate]) -> Plan:
    count = f"{len(candidates)} leader{'s' * (len(candidates) != 1)}"
    lossy = " Records may be lost." if election_type is ElectionType.UNCLEAN else ""
    rows = [candidate_row(candidate) for candidate in candidates]
    return Plan(f"Elect {count} ({election_type})?{lossy}", rows, COLUMNS, partition_name, RESULTS)


def _in_batches(
    session: Session,
    election_type: ElectionType,
    partitions: Sequence[TopicPartition],
    batch_size: int | None,
    pause_s: float,
) -> list[Election]:
    """Run the elections; Ctrl-C stops after the current batch."""
    elections: list[Election] = []
    with ctrl_c_noted() as stop:
        for number, batch in enumerate(_chunks(partitions, batch_size or len(partitions))):
            if (number and stop.wait(pause_s)) or stop.is_set():
                break
            elections += _elect(session, election_type, batch)
    return elections


def _chunks(partitions: Sequence[TopicPartition], size: int) -> Iterator[Sequence[TopicPartition]]:
    return (partitions[at : at + size] for at in range(0, len(partitions), size))


def _elect(
    session: Session, election_type: ElectionType, partitions: Sequence[TopicPartition] | None
) -> list[Election]:
    async def question(client: Client) -> list[Election]:
        return await elect_leaders(client, election_type, partitions, timeout_s=session.timeout)

    return ask(session, question, check="kctl topics describe")


def _needless_is_fine(one: Outcome) -> Outcome:
    """Treats partitions that no longer need an election as success."""
    if one.error is not ErrorCode.ELECTION_NOT_NEEDED:
        return one
    return Outcome(one.name, message="not needed")


def _as_kafka(
    session: Session,
    election_type: ElectionType,
    named: Sequence[str],
    choice: Choice,
    *,
    yes: bool,
    dry_run: bool,
) -> ExitStatus | None:
    """Like Kafka's tool, request an election for all given partitions, needed or not."""
    partitions = _literally(named, choice)
    rows = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions or ()]
    plan = Plan(f"Elect leaders ({election_type})?", rows, COLUMNS[:2], partition_name, ())
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return None
    elections = _elect(session, election_type, partitions)
    session.out.lines(election_lines(election_type, elections))
    fine = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    if failed := [one for _, one in elections if one.error not in fine]:
        raise CliError(failure_message(len(failed)))
    return None


def _literally(named: Sequence[str], choice: Choice) -> list[TopicPartition] | None:
    """The given partitions; None for all."""
    if choice.exact or not named:
        return list(choice.exact) or None
    found = []
    for word in named:
        topic, colon, numbers = word.partition(":")
        if not colon:
            raise usage_error("--format kafka requires a partition", "use --partition")
        found += [TopicPartition(topic, int(number)) for number in numbers.split(",")]
    return found
