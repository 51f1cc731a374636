"""kctl's front door: the table of commands, and the fence that every failure ends at.

A command costs what it uses: its module, and with it the codecs or Spark, is imported when the
command is called, so `kctl --help` and completion stay quick however much kctl learns.
"""

import os
import sys
from typing import Annotated, Any

import typer

from kctl import __version__
from kctl.errors import CliError, ExitStatus
from kctl.groups import LazyCommand, LazyGroup
from kctl.options import Session

TOPICS = "Topics and records"
GROUPS = "Groups and transactions"
CLUSTER = "The cluster"
FILES = "Files and tables"
KCTL = "kctl, and a cluster to try it on"

COMMANDS = {
    "topics": LazyCommand(
        "kctl.commands.topics", "Make, find, describe, change and delete topics.", section=TOPICS
    ),
    "configs": LazyCommand(
        "kctl.commands.configs", "Settings of topics and brokers.", section=TOPICS
    ),
    "produce": LazyCommand("kctl.commands.produce", "Write records to a topic.", section=TOPICS),
    "consume": LazyCommand("kctl.commands.consume", "Read records from topics.", section=TOPICS),
    "offsets": LazyCommand(
        "kctl.commands.offsets",
        "Show offsets of partitions: their ends, their beginnings, or where a time falls.",
        section=TOPICS,
    ),
    "delete-records": LazyCommand(
        "kctl.commands.delete_records",
        "Delete the oldest records of partitions: before an offset, before a time, or all.",
        section=TOPICS,
    ),
    "perf": LazyCommand(
        "kctl.commands.perf", "Measure how fast a cluster writes and reads.", section=TOPICS
    ),
    "groups": LazyCommand(
        "kctl.commands.groups", "Consumer groups: who reads what, how far.", section=GROUPS
    ),
    "transactions": LazyCommand(
        "kctl.commands.transactions",
        "Transactions: which are open, who writes, which hang; end those that do.",
        section=GROUPS,
    ),
    "cluster": LazyCommand("kctl.commands.cluster", "The cluster as a whole.", section=CLUSTER),
    "brokers": LazyCommand("kctl.commands.brokers", "The brokers of the cluster.", section=CLUSTER),
    "api-versions": LazyCommand(
        "kctl.commands.api_versions",
        "Show which requests each broker understands.",
        section=CLUSTER,
    ),
    "log-dirs": LazyCommand(
        "kctl.commands.log_dirs",
        "Show replicas in the log directories of brokers, with their sizes; the largest first.",
        section=CLUSTER,
    ),
    "reassign": LazyCommand(
        "kctl.commands.reassign", "Move replicas between brokers.", section=CLUSTER
    ),
    "throttle": LazyCommand(
        "kctl.commands.throttle", "How fast replicas may be copied.", section=CLUSTER
    ),
    "elect-leaders": LazyCommand(
        "kctl.commands.elect_leaders",
        "Elect leaders of partitions: preferred replicas, or any replica that is left.",
        section=CLUSTER,
    ),
    "replicas": LazyCommand("kctl.commands.replicas", "Replicas of partitions.", section=CLUSTER),
    "metadata": LazyCommand(
        "kctl.commands.metadata", "Where a cluster keeps its metadata.", section=CLUSTER
    ),
    "zk": LazyCommand(
        "kctl.commands.zk",
        "The znodes of a cluster: what ZooKeeper, or a broker alone, keeps for it.",
        section=CLUSTER,
    ),
    "dump-log": LazyCommand(
        "kctl.commands.dump_log", "Read, check and repair the files of a log.", section=FILES
    ),
    "spark-export": LazyCommand(
        "kctl.commands.spark_export",
        "Export topics to Parquet and other tables, on Spark.",
        section=FILES,
    ),
    "context": LazyCommand("kctl.commands.context", "Clusters by name.", section=KCTL),
    "dev": LazyCommand(
        "kctl.commands.dev",
        "Brokers on this machine, for development: one, or a cluster.",
        section=KCTL,
    ),
    "complete": LazyCommand(
        "kctl.commands.complete",
        "Print the names there are; nothing at all if the cluster cannot be asked.",
        hidden=True,
    ),
    "demo": LazyCommand("kctl.commands.demo", "Tour kctl on a broker of its own.", hidden=True),
}

# Every usage error derives from the base of Typer's public BadParameter; the base itself is in
# Typer's private copy of Click.
UsageError: Any = typer.BadParameter.__base__


class RootGroup(LazyGroup):
    """`kctl` itself."""

    lazy_commands = COMMANDS

    def main(self, args: Any = None, *_args: Any, **_extra: Any) -> Any:
        """Run one command line and end the process with its status."""
        session = Session()
        try:
            result = super().main(args, "kctl", standalone_mode=False, obj=session)
            sys.stdout.flush()  # here, where a closed pipe is still ours to handle
            status = ExitStatus(result or 0)
        except BrokenPipeError:
            # The reader (head, less) has seen enough. Python would complain when it flushes
            # stdout at exit, so what is left goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = ExitStatus.FAILED
        except Exception as error:  # noqa: BLE001 - the outermost fence
            status = report(error, session)
        sys.exit(status)


def report(error: Exception, session: Session) -> ExitStatus:
    """Print a failure once, and say which status it is."""
    understood = explain(error)
    session.out.error(understood)
    if session.verbose:
        session.out.details(error)
    return understood.status


def explain(error: Exception) -> CliError:
    """What went wrong in words for the user, whoever raised it."""
    if isinstance(error, CliError):
        return error
    if isinstance(error, UsageError):
        path = error.ctx.command_path if error.ctx else "kctl"
        return CliError(_one_line(error.format_message()), f"see {path} --help", ExitStatus.USAGE)
    if isinstance(error, typer.Abort):
        return CliError("given up: nothing was changed")
    if isinstance(error.__context__, KeyboardInterrupt):
        # Py4J, interrupted in the middle of a call, stumbles over its own clearing up.
        return CliError("interrupted", status=ExitStatus.INTERRUPTED)
    return CliError(
        f"kctl made a mistake: {type(error).__name__}: {error}",
        "please report it, with what `-v` adds to this message",
    )


def _one_line(message: str) -> str:
    return " ".join(message.split())


app = typer.Typer(
    cls=RootGroup,
    add_completion=False,
    help="Work with a Kafka cluster: any Kafka, Apache's or ours.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        Session().out.lines([f"kctl {__version__}"])
        raise typer.Exit


@app.callback()
def kctl(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print kctl's version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Hold the options of kctl itself."""


def main() -> None:
    """The `kctl` command."""
    app(prog_name="kctl")
