"""`kctl elect-leaders`: let preferred replicas lead again, or anybody at all."""

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
from kctl.admin.elect_leaders import Election, ElectionType, elect_leaders
from kctl.admin.topics import Topic, find_topics, live_brokers
from kctl.commands.reassign_words import read_text
from kctl.confirm import DryRun, Plan, Yes, agreed
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, lone_command
from kctl.kafka_text.elections import election_lines, failure_message
from kctl.options import KafkaText, Session, session_of
from kctl.outcomes import Outcome, show_outcomes
from kctl.plans.elections import COLUMNS, Candidate, candidates_of
from kctl.plans.reassign_files import parse_elections
from kctl.streaming.interrupts import ctrl_c_noted
from kctl.words.partitions import (
    Fits,
    PartitionChoice,
    compiled,
    parse_partition_words,
    usage_error,
)
from kctl.words.topics import KAFKA_PANEL, Regex

app = lone_command()


@dataclass(frozen=True)
class Choice:
    """Which partitions are meant: by rules, or these very ones, or all."""

    rules: tuple[Fits, ...] = ()
    exact: tuple[TopicPartition, ...] = ()
    broker: int | None = None

    def pick(self, topics: Sequence[Topic]) -> list[Topic]:
        """The topics with only the partitions that are meant."""
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
            help="preferred: the first replica. unclean: any that is left, where none leads.",
        ),
    ] = ElectionType.PREFERRED,
    broker: Annotated[
        int | None,
        typer.Option(
            "--broker",
            metavar="ID",
            help="What this broker would lead; of unclean elections, what it has a replica of.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", "--all-topic-partitions", help="All that need an election.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "--path-to-json-file", metavar="FILE", help="The partitions of Kafka's JSON."
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Elections at a time; all, if not.")
    ] = None,
    pause: Annotated[
        float, typer.Option("--pause", metavar="SECONDS", min=0, help="Between batches.")
    ] = 0.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    text_format: KafkaText = None,
    kafka_topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            metavar="NAME",
            help="With --partition: the same as TOPIC:PARTITION.",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
    kafka_partition: Annotated[
        int | None,
        typer.Option("--partition", metavar="N", help="See --topic.", rich_help_panel=KAFKA_PANEL),
    ] = None,
) -> ExitStatus | None:
    """Elect leaders of partitions: preferred replicas, or any replica that is left.

    After a broker was down others lead its partitions; a preferred election brings them back. An
    unclean one lets a replica lead that has missed records, which are lost: only for partitions
    that would stay without a leader.
    """
    session = session_of(ctx)
    named = list(words or ())
    if kafka_topic is not None:
        named.append(kafka_topic if kafka_partition is None else f"{kafka_topic}:{kafka_partition}")
    if sum([bool(named), file is not None, everything or broker is not None]) != 1:
        raise usage_error(
            "which partitions is not said", "name topics, or say --all, --broker or --file"
        )
    choice = _choice(named, file, broker, regex=regex)
    if text_format and broker is not None:
        raise usage_error("Kafka's tool knows no --broker", "leave out --format")
    if text_format:
        return _as_kafka(session, election_type, named, choice, yes=yes, dry_run=dry_run)
    candidates = _candidates(session, election_type, choice, named if not regex else [])
    if not candidates:
        session.out.note("no election is needed")
        return None
    if not agreed(session, _plan(election_type, candidates), yes=yes, dry_run=dry_run):
        return None
    partitions = [candidate.partition for candidate in candidates]
    elections = _in_batches(session, election_type, partitions, batch_size, pause)
    show_outcomes(
        session.out, [_needless_is_fine(one) for _, one in elections], "partition", "elected"
    )
    return None if len(elections) == len(partitions) else ExitStatus.INTERRUPTED


def _choice(named: Sequence[str], file: Path | None, broker: int | None, *, regex: bool) -> Choice:
    if file is not None:
        return Choice(exact=tuple(parse_elections(read_text(file), str(file))))
    if regex:
        return Choice(rules=tuple(_fits(compiled(word)) for word in named))
    return Choice(rules=parse_partition_words(named), broker=broker)


def _fits(pattern: re.Pattern[str]) -> Fits:
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
        raise CliError(
            f"no such topic: {', '.join(map(repr, missing))}",
            "kctl topics list shows those there are",
        )
    return candidates_of(choice.pick(topics), election_type, alive, choice.broker)


def _plan(election_type: ElectionType, candidates: Sequence[Candidate]) -> Plan:
    count = f"{len(candidates)} leader{'s' * (len(candidates) != 1)}"
    lossy = " Records may be lost." if election_type is ElectionType.UNCLEAN else ""
    rows = [candidate.row() for candidate in candidates]
    return Plan(f"Elect {count} ({election_type})?{lossy}", rows, COLUMNS, "topic")


def _in_batches(
    session: Session,
    election_type: ElectionType,
    partitions: Sequence[TopicPartition],
    batch_size: int | None,
    pause_s: float,
) -> list[Election]:
    """Hold the elections; Ctrl-C ends it between two batches."""
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

    return ask(session, question)


def _needless_is_fine(one: Outcome) -> Outcome:
    """Somebody else was quicker: what was wanted is so."""
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
    """Kafka's tool asks for what was named, whether it needs an election, or exists, or not."""
    partitions = _literally(named, choice)
    rows = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions or ()]
    plan = Plan(f"Elect leaders ({election_type})?", rows, COLUMNS[:2], "topic")
    if not agreed(session, plan, yes=yes, dry_run=dry_run):
        return None
    elections = _elect(session, election_type, partitions)
    session.out.lines(election_lines(election_type, elections))
    fine = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    if failed := [one for _, one in elections if one.error not in fine]:
        raise CliError(failure_message(len(failed)))
    return None


def _literally(named: Sequence[str], choice: Choice) -> list[TopicPartition] | None:
    """The partitions as they were named; None for all."""
    if choice.exact or not named:
        return list(choice.exact) or None
    found = []
    for word in named:
        topic, colon, numbers = word.partition(":")
        if not colon:
            raise usage_error("Kafka's tool elects partition by partition", "say --partition too")
        found += [TopicPartition(topic, int(number)) for number in numbers.split(",")]
    return found
