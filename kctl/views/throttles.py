"""Rows and columns of `kctl throttle`."""

from kctl.cli.tables import Column
from kctl.model.throttles import Throttle

COLUMNS = [Column("entity"), Column("config"), Column("value"), Column("leaked")]


def throttle_row(throttle: Throttle) -> dict[str, object]:
    """A throttle as a row of COLUMNS."""
    return {
        "entity": str(throttle.entity),
        "config": throttle.config,
        "value": throttle.value,
        "leaked": throttle.leaked,
    }
