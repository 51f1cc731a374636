"""The options that the verbs of `kctl reassign` share, and what they mean."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.reassignments import find_layout
from kctl.admin.topics import find_topics
from kctl.commands.topic_show import require_all_found
from kctl.errors import CliError
from kctl.options import Session
from kctl.plans.reassign_draft import Assignment, Layout
from kctl.plans.reassign_files import (
    ReassignmentFile,
    parse_reassignment,
    parse_topics,
    reassignment_json,
)
from kctl.plans.reassign_goals import (
    Balance,
    Goals,
    Racks,
    Unplannable,
    allowed_brokers,
    plan_reassignment,
)
from kctl.words.amounts import parse_broker_ids
from kctl.words.partitions import usage_error
from kctl.words.topics import KAFKA_PANEL, Selection

Brokers = Annotated[
    str | None,
    typer.Option(
        "--brokers",
        "--broker-list",
        metavar="1,2,3",
        help="Use these brokers and no others.",
    ),
]
Drain = Annotated[
    str | None,
    typer.Option("--drain", metavar="4,5", help="Leave nothing on these brokers."),
]
AddBrokers = Annotated[
    str | None,
    typer.Option("--add-brokers", metavar="6", help="Give these brokers their share."),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", min=1, help="Give partitions so many replicas."),
]
RackAware = Annotated[
    bool | None,
    typer.Option(
        "--rack-aware/--no-rack-aware",
        help="Spread partitions over racks anew, or take no notice of racks. Without either, what"
        " moves goes to racks that have no replica yet.",
        show_default=False,
    ),
]
BalanceOption = Annotated[
    list[Balance] | None,
    typer.Option(
        "--balance",
        metavar="WHAT",
        help="Even out count, size or leaders among brokers; can be given again.",
    ),
]
TopicsFile = Annotated[
    Path | None,
    typer.Option(
        "--topics-to-move-json-file",
        metavar="FILE",
        help="Kafka's JSON file of topics, instead of TOPIC….",
        rich_help_panel=KAFKA_PANEL,
    ),
]
DisableRackAware = Annotated[
    bool,
    typer.Option(
        "--disable-rack-aware",
        help="The same as --no-rack-aware.",
        rich_help_panel=KAFKA_PANEL,
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="Kafka's JSON plan; - is the standard input."),
]
KafkaPlanFile = Annotated[
    Path | None,
    typer.Option(
        "--reassignment-json-file",
        metavar="FILE",
        help="The same as FILE.",
        rich_help_panel=KAFKA_PANEL,
    ),
]
Throttle = Annotated[
    str | None,
    typer.Option("--throttle", metavar="RATE", help="Bytes a second each broker may spend: 50MB."),
]
Additional = Annotated[
    bool,
    typer.Option("--additional", help="Go on though other reassignments are under way."),
]
Rollback = Annotated[
    Path | None,
    typer.Option(
        "--rollback",
        metavar="FILE",
        help="Where to write the plan that undoes it; kctl-rollback-TIME.json if not said.",
    ),
]
PreserveThrottles = Annotated[
    bool,
    typer.Option(
        "--preserve-throttles",
        help="Leave throttles as they are.",
        rich_help_panel=KAFKA_PANEL,
    ),
]


class MissingPartition(CliError):
    """A plan names a topic or a partition that there is not."""


@dataclass(frozen=True)
class GoalWords:
    """The options that say what a reassignment is for."""

    brokers: str | None
    drain: str | None
    add_brokers: str | None
    replication_factor: int | None
    rack_aware: bool | None
    balance: Sequence[Balance] | None

    def goals(self) -> Goals:
        """What they mean; CliError if an id is none."""
        racks = {None: Racks.KEPT, True: Racks.MENDED, False: Racks.IGNORED}[self.rack_aware]
        brokers = parse_broker_ids(self.brokers, "--brokers")
        return Goals(
            brokers=brokers or None,
            drain=parse_broker_ids(self.drain, "--drain"),
            add=parse_broker_ids(self.add_brokers, "--add-brokers"),
            replication_factor=self.replication_factor,
            racks=racks,
            balance=frozenset(self.balance or ()),
        )


@dataclass(frozen=True)
class Proposal:
    """A plan with what it was made from."""

    layout: Layout
    changes: Assignment
    allowed: frozenset[int]


def propose(session: Session, wanted: Selection, goals: Goals) -> Proposal:
    """The plan that meets the goals for these topics; CliError if there is none."""
    if goals.is_nothing:
        raise usage_error(
            "nothing to plan for",
            "say --drain, --add-brokers, --brokers, --replication-factor, --rack-aware, --balance",
        )
    if goals.replication_factor and wanted.is_everything:
        raise usage_error(
            "--replication-factor needs topics", "name them, or say '.*' --regex for all"
        )
    layout = ask(session, lambda client: _selected_layout(client, wanted))
    _tell_absent(session, layout, goals.drain)
    try:
        changes = plan_reassignment(layout, goals)
        return Proposal(layout, changes, allowed_brokers(layout, goals))
    except Unplannable as error:
        raise CliError(str(error), error.hint) from error


def _tell_absent(session: Session, layout: Layout, drained: frozenset[int]) -> None:
    """A broker that is gone may be drained twice; but perhaps another one was meant."""
    placed = {broker for replicas in layout.replicas.values() for broker in replicas}
    if absent := sorted(drained - placed - layout.brokers.keys()):
        listed = ", ".join(map(str, absent))
        session.out.note(f"--drain {listed}: not up, and without a replica of these topics")


def proposal_of_file(session: Session, wanted: Assignment) -> Proposal:
    """A plan that was read from a file, beside what there is.

    CliError, in the words and the order of Kafka's tool, if it names what there is not.
    """

    async def question(client: Client) -> Layout:
        names = {partition.topic for partition in wanted}
        return await find_layout(client, await find_topics(client, names))

    layout = ask(session, question)
    named = {broker for replicas in wanted.values() for broker in replicas}
    if unknown := sorted(named - layout.brokers.keys()):
        raise CliError(f"Unknown broker id {unknown[0]}", "kctl brokers list shows the ids")
    present = {partition.topic for partition in layout.replicas}
    if missing := [partition for partition in sorted(wanted) if partition not in layout.replicas]:
        gone = [partition.topic for partition in missing if partition.topic not in present]
        what = f"Topic {gone[0]} not found." if gone else _missing_partitions(missing)
        raise MissingPartition(what, "kctl topics describe shows what there is")
    return Proposal(layout, wanted, frozenset(layout.brokers))


def _missing_partitions(missing: Sequence[TopicPartition]) -> str:
    return f"Unable to find partition: {', '.join(map(str, missing))}"


async def _selected_layout(client: Client, wanted: Selection) -> Layout:
    found = await find_topics(client, wanted.exact_names)
    chosen = set(wanted.pick(topic.name for topic in found))
    topics = [topic for topic in found if topic.name in chosen]
    require_all_found(wanted, topics)
    return await find_layout(client, topics)


def read_text(path: Path) -> str:
    """A file, or the standard input for `-`; CliError if it cannot be read."""
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text()
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror}", "is the path right?") from error


def topics_in_file(path: Path) -> Selection:
    """The topics that Kafka's JSON file names."""
    return Selection(tuple(parse_topics(read_text(path), str(path))))


def parse_plan(file: Path | None, kafka_file: Path | None) -> ReassignmentFile:
    """What the plan file asks for, however the file was named."""
    path = file or kafka_file
    if path is None:
        raise usage_error("no plan named", "give the FILE that reassign plan --out wrote")
    return parse_reassignment(read_text(path), str(path))


def write_rollback(session: Session, path: Path | None, current: Assignment) -> None:
    """Write the plan that undoes what is about to happen.

    CliError, before it happens, if the file cannot be written, or is there already: it may be the
    way back from something else.
    """
    target = path or _new_name()
    if target.exists():
        raise CliError(f"{target} exists already: nothing was changed", "name another --rollback")
    write_plan(target, current)
    session.out.note(f"rollback: kctl reassign run --file {target}")


def _new_name() -> Path:
    stem = f"kctl-rollback-{datetime.now():%Y%m%d-%H%M%S}"
    names = (Path(f"{stem}{end}.json") for end in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(name for name in names if not name.exists())


def write_plan(path: Path, assignment: Assignment) -> None:
    """Write Kafka's JSON; CliError if the file cannot be written."""
    try:
        path.write_text(reassignment_json(assignment) + "\n")
    except OSError as error:
        raise CliError(
            f"cannot write {path}: {error.strerror}: nothing was changed", "name another file"
        ) from error
