"""What the measurements have in common: consumer properties, progress, exit status."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event

from kctl.cli.errors import ExitStatus
from kctl.cli.options import Session
from kctl.cli.progress import progress_display
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


def show_metrics(session: Session, metrics: Mapping[str, float]) -> None:
    """Print the statistics of a client, one per line; in JSON they are part of the result."""
    if not session.output.is_for_people or not metrics:
        return
    width = max(map(len, metrics))
    session.out.lines([f"{name:<{width}} : {value}" for name, value in metrics.items()])


@contextmanager
def progress(num_records: int) -> Iterator[Callable[[Mapping[str, float]], None]]:
    """Shows the results so far beside a bar; nothing if stderr is not a terminal.

    It is drawn only when there are new results: drawing must not disturb the measurement.
    """
    with progress_display(of_bytes=False) as show:
        yield lambda result: show(progress_text(result), int(result["records"]), num_records)
