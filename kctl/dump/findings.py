"""What a check finds: one thing wrong, where, and what to do about it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kctl.tables import Column

FINDING_COLUMNS: Final = [
    Column("check"),
    Column("file"),
    Column("position", right=True),
    Column("problem"),
    Column("remedy"),
]

REPAIR: Final = "save what is sound with `kctl dump-log repair`, or let the broker cut it off"
REBUILD: Final = "delete the file with the broker stopped: it is built again at the start"
COMPARE: Final = "compare with the other replicas before anything else"


@dataclass(frozen=True)
class Finding:
    """One thing wrong with one file."""

    check: str
    """The kind of check, one word: crc, batch, order, gap, epoch, index, timeindex, …"""
    file: Path
    position: int | None
    """The byte in the file, where there is one."""
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
