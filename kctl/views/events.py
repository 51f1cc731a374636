"""Events as lines of a timeline and as JSON."""

import json

from kctl.cli.tables import cell
from kctl.cli.times import iso_time
from kctl.model.events import Event

_KIND_WIDTH = 16
_SUBJECT_WIDTH = 20


def event_line(event: Event, now_ms: int) -> str:
    """`2026-11-18T08:00:00.000Z  leader  orders-0  1 → 2  epoch 5`."""
    head = f"{iso_time(now_ms)}  {event.kind:<{_KIND_WIDTH}}  {event.subject:<{_SUBJECT_WIDTH}}"
    return f"{head}  {_change(event)}  {event.detail}".rstrip()


def _change(event: Event) -> str:
    if event.before is None and event.after is None:
        return ""
    return f"{cell(event.before)} → {cell(event.after)}"


def event_json(event: Event, now_ms: int) -> str:
    """The event as one line of JSON."""
    return json.dumps(
        {
            "time": iso_time(now_ms),
            "event": event.kind.value,
            "subject": event.subject,
            "before": event.before,
            "after": event.after,
            "detail": event.detail or None,
        }
    )
