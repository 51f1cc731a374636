"""What the measurements have in common: consumer properties, progress, exit status."""

import sys
from collections.abc import Callable, Mapping
from threading import Event

from kctl.cli.errors import ExitStatus
from kctl.cli.options import Session
from kctl.views.perf import progress_text


def exit_status(interrupted: Event) -> ExitStatus:
    """The exit status of a measurement, which Ctrl-C ends early."""
    return ExitStatus.INTERRUPTED if interrupted.is_set() else ExitStatus.OK


def consumer_properties(shared: dict[str, object]) -> dict[str, object]:
    """Properties of a consumer that commits no offsets; `shared` takes precedence."""
    own: dict[str, object] = {
        "group.id": "kctl-perf",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 100,
        "auto.offset.reset": "earliest",
    }
    return own | shared


def progress_line(session: Session) -> Callable[[Mapping[str, float]], None]:
    """Shows the results so far in a line on the terminal; nothing if stderr is not one."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda result: session.out.note(progress_text(result))
