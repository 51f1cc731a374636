"""What Kafka's own tools printed on a cluster of three (tests/golden/tools)."""

from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).parents[1] / "golden" / "tools"


@dataclass(frozen=True)
class GoldenTool:
    """One run: what it printed, and its exit status."""

    lines: list[str]
    status: int

    @property
    def text(self) -> str:
        """The lines as they were printed."""
        return "".join(f"{line}\n" for line in self.lines)


def golden_tool(name: str) -> GoldenTool:
    """The run in the file that begins with `name`, e.g. `10-`."""
    (path,) = TOOLS.glob(f"{name}*.txt")
    _, *lines, status = path.read_text().splitlines()
    return GoldenTool(lines, int(status.removeprefix("exit ")))
