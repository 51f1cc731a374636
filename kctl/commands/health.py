"""`kctl health`."""

import time
from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.admin.health import cluster_state
from kctl.cli.command_tree import command, lone_command
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session, session_of
from kctl.model.health import Finding, Severity
from kctl.plans.health import findings
from kctl.views.health import COLUMNS, finding_rows
from kctl.views.quantities import plural

app = lone_command()

_POLL_S = 1.0


@command(
    app,
    "health",
    examples=[
        "kctl health",
        "kctl health --wait 120",
        "kctl health --critical -o json",
    ],
)
def health(
    ctx: typer.Context,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="Repeat the checks until there are no findings, at most for this time.",
        ),
    ] = None,
    critical: Annotated[
        bool, typer.Option("--critical", help="Ignore warnings such as under-replication.")
    ] = False,
) -> None:
    """Check the health of the cluster.

    Finds brokers that do not answer, a missing controller, partitions that are offline, under
    min.insync.replicas or under-replicated, failed log directories and disks with less than 15 %
    free. Works on any Kafka.

    Exits with 0 if there are no findings, otherwise with 3. With --wait, the cluster may also
    be unreachable at first: use it as a readiness check after a restart.
    """
    session = session_of(ctx)
    deadline = time.monotonic() + (wait or 0)
    while True:
        is_last = time.monotonic() >= deadline
        try:
            found = _check(session, critical=critical)
        except CliError as error:
            if is_last or error.status is ExitStatus.USAGE:
                raise
        else:
            if not found:
                session.out.nothing("no problems found")
                return
            if is_last:
                session.out.rows(finding_rows(found), COLUMNS, name="subject")
                session.out.note(f"{plural(len(found), 'problem')} found")
                raise typer.Exit(ExitStatus.FOUND)
        time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))


def _check(session: Session, *, critical: bool) -> list[Finding]:
    """The findings now; brokers that did not answer are among them, not reported separately."""
    state = ask(session, cluster_state, partial=True)
    session.unanswered.clear()
    found = findings(state)
    return [f for f in found if f.severity is Severity.CRITICAL] if critical else found
