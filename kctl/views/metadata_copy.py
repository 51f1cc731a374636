"""Rows and columns of `kctl metadata copy`."""

from collections.abc import Iterable, Mapping

from kctl.cli.tables import Column

COLUMNS = [
    Column("what"),
    Column("copied", right=True),
    Column("left_out", right=True),
]


def copy_rows(
    kinds: Iterable[str], copied: Mapping[str, int], left_out: Mapping[str, int]
) -> list[dict[str, object]]:
    """A row per kind of znode that was found, in the order of `kinds`."""
    return [
        {"what": kind, "copied": copied.get(kind, 0), "left_out": left_out.get(kind, 0)}
        for kind in kinds
        if kind in copied or kind in left_out
    ]
