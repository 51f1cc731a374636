"""The table of commands, and the one place where errors become messages and exit statuses.

A command's module, and with it the codecs or Spark, is imported when the command is used, so that
`kctl --help` and completion stay fast.
"""

import os
import re
import sys
from typing import Annotated, Any

import typer

from kctl import __version__
from kctl.cli.command_tree import LazyCommand, LazyGroup
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.options import Session
from kctl.cli.streams import discard_stdout, flush_stdout, prepare_streams

TOPICS = "Topics and records"
GROUPS = "Groups and transactions"
CLUSTER = "Cluster"
SECURITY = "Security and quotas"
FILES = "Files and tables"
KCTL = "kctl and development clusters"

EXTRAS = {
    "pyarrow": "spark",
    "pyspark": "spark",
    "fastavro": "registry",
    "google": "registry",
    "grpc_tools": "registry",
    "jsonschema": "registry",
    "textual": "top",
}
"""Optional packages, and the extra of kctl that installs each (pyproject.toml)."""

COMMANDS = {
    "topics": LazyCommand(
        "kctl.commands.topics.app",
        "List, describe, watch, create, alter and delete topics.",
        section=TOPICS,
    ),
    "configs": LazyCommand(
        "kctl.commands.configs.app",
        "Describe and alter configs of topics, brokers, groups and client metrics.",
        section=TOPICS,
    ),
    "produce": LazyCommand(
        "kctl.commands.produce", "Write records to an existing topic.", section=TOPICS
    ),
    "consume": LazyCommand("kctl.commands.consume", "Read records from topics.", section=TOPICS),
    "offsets": LazyCommand(
        "kctl.commands.offsets",
        "Show the offsets of partitions: log start, log end, or at a given time.",
        section=TOPICS,
    ),
    "delete-records": LazyCommand(
        "kctl.commands.delete_records",
        "Delete the records before an offset or a time, or all records.",
        section=TOPICS,
    ),
    "perf": LazyCommand(
        "kctl.commands.perf.app", "Measure the throughput and latency of a cluster.", section=TOPICS
    ),
    "verify": LazyCommand(
        "kctl.commands.verify.app",
        "Write numbered records and find lost and duplicate ones.",
        section=TOPICS,
    ),
    "registry": LazyCommand(
        "kctl.commands.registry.app",
        "List, show, compare, check, register and delete schemas of a schema registry.",
        section=TOPICS,
    ),
    "groups": LazyCommand(
        "kctl.commands.groups.app",
        "List, describe, watch, reset and delete consumer groups.",
        section=GROUPS,
    ),
    "streams": LazyCommand(
        "kctl.commands.streams.app", "Reset Kafka Streams applications.", section=GROUPS
    ),
    "transactions": LazyCommand(
        "kctl.commands.transactions.app",
        "List and describe transactions; find and abort hanging ones.",
        section=GROUPS,
    ),
    "cluster": LazyCommand(
        "kctl.commands.cluster.app", "Describe the cluster; unregister brokers.", section=CLUSTER
    ),
    "health": LazyCommand(
        "kctl.commands.health", "Check the health of the cluster.", section=CLUSTER
    ),
    "quorum": LazyCommand(
        "kctl.commands.quorum",
        "Describe the KRaft quorum: the controllers and the metadata log.",
        section=CLUSTER,
    ),
    "features": LazyCommand(
        "kctl.commands.features.app",
        "Describe, upgrade and downgrade the features of a KRaft cluster.",
        section=CLUSTER,
    ),
    "events": LazyCommand(
        "kctl.commands.events",
        "Follow changes of the cluster: brokers, controller, topics, leaders, ISR, replicas.",
        section=CLUSTER,
    ),
    "brokers": LazyCommand(
        "kctl.commands.brokers", "List the brokers of the cluster.", section=CLUSTER
    ),
    "top": LazyCommand(
        "kctl.commands.top",
        "Watch a cluster on the terminal: brokers, topics, partitions, groups, reassignments.",
        section=CLUSTER,
    ),
    "monitor": LazyCommand(
        "kctl.commands.monitor.app",
        "Watch clusters: serve metrics of lag and health, keep a history.",
        section=CLUSTER,
    ),
    "metrics": LazyCommand(
        "kctl.commands.metrics", "Show the metrics of a broker's admin port.", section=CLUSTER
    ),
    "api-versions": LazyCommand(
        "kctl.commands.api_versions",
        "Show the API versions that each broker supports.",
        section=CLUSTER,
    ),
    "log-dirs": LazyCommand(
        "kctl.commands.log_dirs",
        "Show the replicas in the brokers' log directories and their sizes.",
        section=CLUSTER,
    ),
    "reassign": LazyCommand(
        "kctl.commands.reassign.app",
        "Plan, run and verify partition reassignments.",
        section=CLUSTER,
    ),
    "throttle": LazyCommand(
        "kctl.commands.throttle.app", "List, set and clear replication throttles.", section=CLUSTER
    ),
    "elect-leaders": LazyCommand(
        "kctl.commands.elect_leaders",
        "Trigger preferred or unclean leader elections.",
        section=CLUSTER,
    ),
    "replicas": LazyCommand(
        "kctl.commands.replicas",
        "List the replicas of partitions; verify that they are identical.",
        section=CLUSTER,
    ),
    "metadata": LazyCommand(
        "kctl.commands.metadata", "Copy the metadata of a cluster between stores.", section=CLUSTER
    ),
    "zk": LazyCommand(
        "kctl.commands.zk.app",
        "Read and watch the znodes of a cluster, in ZooKeeper or in an embedded store.",
        section=CLUSTER,
    ),
    "acls": LazyCommand(
        "kctl.commands.acls.app", "List, add, remove, explain and audit ACLs.", section=SECURITY
    ),
    "users": LazyCommand(
        "kctl.commands.users.app",
        "List, set and delete SCRAM credentials of users.",
        section=SECURITY,
    ),
    "quotas": LazyCommand(
        "kctl.commands.quotas.app",
        "List, set, delete and resolve client quotas.",
        section=SECURITY,
    ),
    "tokens": LazyCommand(
        "kctl.commands.tokens.app",
        "Create, renew, expire and list delegation tokens.",
        section=SECURITY,
    ),
    "dump-log": LazyCommand(
        "kctl.commands.dump_log.app",
        "Show, locate, check and repair the files of a log.",
        section=FILES,
    ),
    "spark-export": LazyCommand(
        "kctl.commands.spark_export.app",
        "Export topics to Parquet and other formats with Spark.",
        section=FILES,
    ),
    "import": LazyCommand(
        "kctl.commands.import_exports",
        "Restore topics from the exports of kctl spark-export.",
        section=FILES,
    ),
    "context": LazyCommand(
        "kctl.commands.context.app", "Manage contexts: named clusters.", section=KCTL
    ),
    "dev": LazyCommand(
        "kctl.commands.dev.app",
        "Run a development broker or cluster on this machine.",
        section=KCTL,
    ),
    "completion": LazyCommand(
        "kctl.commands.completion", "Print the completion script of a shell.", section=KCTL
    ),
    "complete": LazyCommand(
        "kctl.commands.complete",
        "Print names for shell completion; nothing if the cluster does not answer.",
        hidden=True,
    ),
    "demo": LazyCommand(
        "kctl.commands.demo", "Run a tour of kctl on a temporary broker.", hidden=True
    ),
}

# Every usage error derives from the base of Typer's public BadParameter; the base itself is in
# Typer's private copy of Click.
UsageError: Any = typer.BadParameter.__base__


class RootGroup(LazyGroup):
    """`kctl` itself."""

    lazy_commands = COMMANDS

    def main(self, args: Any = None, *_args: Any, **_extra: Any) -> Any:
        """Run one command line and end the process with its status."""
        session = Session(find_cluster_id=_find_cluster_id)
        try:
            prepare_streams()
            words = _as_options(sys.argv[1:] if args is None else list(args))
            result = super().main(words, "kctl", standalone_mode=False, obj=session)
            sys.stdout.flush()  # here, so that a closed pipe or a full disk is handled below
            status = ExitStatus(result or 0)
        except BrokenPipeError:  # the reader (head, less) has exited
            discard_stdout()
            status = ExitStatus.FAILED
        except Exception as error:  # noqa: BLE001 - the outermost fence
            status = report(error, session)
            flush_stdout()
        else:
            status = report_unanswered(session, status)
        finally:
            session.close()
        sys.exit(status)


def _as_options(args: list[str]) -> list[str]:
    """`kctl help topics create` is `kctl topics create --help`; `kctl version` is --version."""
    if args[:1] == ["help"]:
        return [*args[1:], "--help"]
    return ["--version"] if args == ["version"] else args


def _find_cluster_id(session: Session) -> str | None:
    from kctl.admin.cluster import find_cluster_id  # imported here: few runs need it

    return find_cluster_id(session)


def report(error: Exception, session: Session) -> ExitStatus:
    """Print an error once; returns the exit status."""
    understood = explain(error)
    session.out.error(understood)
    if session.verbose:
        session.out.details(error)
    return understood.status


def report_unanswered(session: Session, status: ExitStatus) -> ExitStatus:
    """Report brokers whose part of the result is missing; success then becomes status 4."""
    for _, message in sorted(session.unanswered.items()):
        session.out.note(message)
    return ExitStatus.TIMED_OUT if session.unanswered and not status else status


def explain(error: Exception) -> CliError:
    """The message for the user, whatever was raised."""
    if isinstance(error, CliError):
        return error
    if isinstance(error, UsageError):
        path = error.ctx.command_path if error.ctx else "kctl"
        return CliError(_one_line(error.format_message()), f"see {path} --help", ExitStatus.USAGE)
    if isinstance(error, typer.Abort):
        # Click turns Ctrl-C at a prompt into Abort.
        is_ctrl_c = isinstance(error.__context__, KeyboardInterrupt)
        status = ExitStatus.INTERRUPTED if is_ctrl_c else ExitStatus.FAILED
        return CliError("aborted: nothing was changed", status=status)
    if isinstance(error.__context__, KeyboardInterrupt):
        # Py4J raises other errors from its cleanup when a call is interrupted.
        return CliError("interrupted", status=ExitStatus.INTERRUPTED)
    if isinstance(error, UnicodeEncodeError):
        # Bytes of the command line that are not UTF-8 reach kctl as surrogates.
        text = error.object[error.start : error.end].encode("utf-8", "backslashreplace").decode()
        return usage_error(f"not valid UTF-8: {text}", "names in Kafka are UTF-8")
    if isinstance(error, OSError):
        return os_error(error)
    if isinstance(error, ModuleNotFoundError) and (missing := _optional_package(error)):
        return CliError(f"{missing} is not installed", f"pip install 'kctl[{EXTRAS[missing]}]'")
    return CliError(
        f"internal error: {type(error).__name__}: {error}",
        "please report it, with the output of `-v`",
    )


def _optional_package(error: ModuleNotFoundError) -> str | None:
    """The optional package that is missing; None if it is another module."""
    package = (error.name or "").partition(".")[0]
    return package if package in EXTRAS else None


def os_error(error: OSError) -> CliError:
    """A file or the output could not be used: a full disk, missing permissions."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return CliError(f"cannot write the output: {reason}")
    return CliError(f"cannot use {os.fsdecode(error.filename)}: {reason}")


def _one_line(message: str) -> str:
    """Click's message in one line, without the names of its types."""
    text = " ".join(message.split())
    text = re.sub(r"is not a valid (int|integer|float)( range)?\b", "is not a number", text)
    text = re.sub(r"is not in the range x>=([\d.]+)\.$", r"is less than \1.", text)
    return re.sub(r"(-?[\d.]+) is not in the range ([\d.]+)<=x<=([\d.]*\d)", _range, text)


def _range(match: re.Match[str]) -> str:
    value, least, most = match.groups()
    if float(value) < float(least):
        return f"{value} is less than {least}"
    return f"{value} is not in the range {least} to {most}"


app = typer.Typer(
    cls=RootGroup,
    add_completion=False,
    help="Administer any Kafka cluster: topics, groups, configs, reassignments, log files.",
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
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Options of kctl itself."""


def main() -> None:
    """The `kctl` command."""
    app(prog_name="kctl")
