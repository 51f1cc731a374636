"""Options that the verbs of `kctl reassign` share."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kctl.cli.arguments.amounts import parse_broker_ids
from kctl.cli.arguments.files import read_text
from kctl.cli.arguments.plan_files import parse_reassignment, parse_topics
from kctl.cli.arguments.topics import KAFKA_PANEL, Selection
from kctl.cli.errors import usage_error
from kctl.model.assignments import ReassignmentFile
from kctl.plans.reassignment.goals import (
    Balance,
    Goals,
    Racks,
)

Brokers = Annotated[
    str | None,
    typer.Option(
        "--brokers",
        "--broker-list",
        metavar="1,2,3",
        help="Use only these brokers.",
    ),
]
Drain = Annotated[
    str | None,
    typer.Option("--drain", metavar="4,5", help="Move all replicas away from these brokers."),
]
AddBrokers = Annotated[
    str | None,
    typer.Option(
        "--add-brokers", metavar="6", help="Move a fair share of the replicas to these new brokers."
    ),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", min=1, max=32767, help="Set the replication factor."),
]
RackAware = Annotated[
    bool | None,
    typer.Option(
        "--rack-aware/--no-rack-aware",
        help="Spread all partitions over racks, or ignore racks. By default only moved replicas "
        "are placed in racks without a replica of the partition.",
        show_default=False,
    ),
]
BalanceOption = Annotated[
    list[Balance] | None,
    typer.Option(
        "--balance",
        metavar="WHAT",
        help="Balance replica count, size or leaders among brokers; can be repeated.",
    ),
]
TopicsFile = Annotated[
    Path | None,
    typer.Option(
        "--topics-to-move-json-file",
        metavar="FILE",
        help="JSON file of topics, instead of TOPIC….",
        rich_help_panel=KAFKA_PANEL,
    ),
]
DisableRackAware = Annotated[
    bool,
    typer.Option(
        "--disable-rack-aware",
        help="Same as --no-rack-aware.",
        rich_help_panel=KAFKA_PANEL,
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="JSON plan; - reads from stdin."),
]
KafkaPlanFile = Annotated[
    Path | None,
    typer.Option(
        "--reassignment-json-file",
        metavar="FILE",
        help="Same as FILE.",
        rich_help_panel=KAFKA_PANEL,
    ),
]
Throttle = Annotated[
    str | None,
    typer.Option(
        "--throttle",
        metavar="RATE",
        help="Replication throttle of each broker in bytes per second, e.g. 50MB.",
    ),
]
Additional = Annotated[
    bool,
    typer.Option("--additional", help="Start even if other reassignments are in progress."),
]
Rollback = Annotated[
    Path | None,
    typer.Option(
        "--rollback",
        metavar="FILE",
        help="File for the plan that undoes the reassignment (default: a new file in "
        "~/.local/state/kctl/rollbacks, or below $XDG_STATE_HOME).",
    ),
]
PreserveThrottles = Annotated[
    bool,
    typer.Option(
        "--preserve-throttles",
        help="Do not remove throttles.",
        rich_help_panel=KAFKA_PANEL,
    ),
]


@dataclass(frozen=True)
class GoalOptions:
    """The goals of a reassignment, as given on the command line."""

    brokers: str | None
    drain: str | None
    add_brokers: str | None
    replication_factor: int | None
    rack_aware: bool | None
    balance: Sequence[Balance] | None

    def goals(self) -> Goals:
        """The parsed goals; CliError for a malformed broker id."""
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


def topics_in_file(path: Path) -> Selection:
    """The topics in Kafka's JSON file."""
    return Selection(tuple(parse_topics(read_text(path), str(path))))


def parse_plan(file: Path | None, kafka_file: Path | None) -> ReassignmentFile:
    """The parsed plan file, from the argument or from Kafka's option."""
    path = file or kafka_file
    if path is None:
        raise usage_error(
            "no plan file specified", "specify a FILE written by kctl reassign plan --out"
        )
    return parse_reassignment(read_text(path), str(path))
