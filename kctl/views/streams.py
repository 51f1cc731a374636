"""Rows and columns of `kctl streams`."""

from collections.abc import Sequence

from kctl.cli.tables import Column
from kctl.model.offset_resets import NewOffset

RESET_COLUMNS = [
    Column("topic", priority=0),
    Column("partition", right=True, priority=0),
    Column("kind", priority=2),
    Column("action", priority=1),
    Column("current_offset", "CURRENT", right=True, priority=3),
    Column("new_offset", "NEW", right=True, priority=1),
    Column("note"),
]


def reset_rows(
    inputs: Sequence[NewOffset], intermediates: Sequence[NewOffset], internals: Sequence[str]
) -> list[dict[str, object]]:
    """Offsets that are reset, then topics that are deleted."""
    rows = [_offset_row(new, "input") for new in inputs]
    rows += [_offset_row(new, "intermediate") for new in intermediates]
    rows += [
        {
            "topic": name,
            "partition": None,
            "kind": "internal",
            "action": "delete",
            "current_offset": None,
            "new_offset": None,
            "note": None,
        }
        for name in internals
    ]
    return rows


def _offset_row(new: NewOffset, kind: str) -> dict[str, object]:
    return {
        "topic": new.place.topic,
        "partition": new.place.partition,
        "kind": kind,
        "action": "reset",
        "current_offset": new.current_offset,
        "new_offset": new.new_offset,
        "note": new.note or None,
    }
