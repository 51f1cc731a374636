"""`kctl throttle list`."""

from typing import Annotated

import typer

from kctl.admin.connection import ask
from kctl.cli.errors import ExitStatus
from kctl.cli.options import session_of
from kctl.operations.throttles import find_throttles
from kctl.views.throttles import COLUMNS, throttle_row


def list_throttles(
    ctx: typer.Context,
    leaked: Annotated[
        bool,
        typer.Option(
            "--leaked",
            help="Only throttles without a reassignment in progress; status 3 if there are any.",
        ),
    ] = False,
) -> ExitStatus:
    """List the throttles of brokers and topics; a leaked one has outlived its reassignment."""
    session = session_of(ctx)
    found = ask(session, find_throttles, partial=True)
    lost = [throttle for throttle in found if throttle.leaked]
    session.out.rows(map(throttle_row, lost if leaked else found), COLUMNS, name="entity")
    if lost:
        session.out.note(f"{len(lost)} leaked: kctl throttle clear --leaked removes them")
    return ExitStatus.FOUND if lost and leaked else ExitStatus.OK
