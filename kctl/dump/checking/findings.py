"""Findings of a check: the problem, its place and a remedy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kctl.cli.tables import Column

FINDING_COLUMNS: Final = [
    Column("check"),
    Column("file"),
    Column("position", right=True),
    Column("problem"),
    Column("remedy"),
]

REPAIR: Final = (
    "copy the undamaged part with `kctl dump-log repair`, or let the broker truncate the log"
)
REBUILD: Final = "delete the file while the broker is stopped: it is rebuilt at startup"
COMPARE: Final = "compare with the other replicas first"


@dataclass(frozen=True)
class Finding:
    """One problem in one file."""

    check: str
    """The kind of check, one word: crc, batch, order, gap, epoch, index, timeindex, …"""
    file: Path
    position: int | None
    """The position in the file, if known."""
    problem: str
    remedy: str

    def row(self) -> dict[str, object]:
        """For the formats that programs read."""
        return {
            "check": self.check,
            "file": str(self.file),
            "position": self.position,
            "problem": self.problem,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        place = "" if self.position is None else f" position {self.position}"
        return f"{self.file}{place}: {self.problem}; {self.remedy}"
