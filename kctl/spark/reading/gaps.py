"""Records that were deleted before they were read: an error, or noted and skipped."""

from dataclasses import dataclass, field

from broker.model import TopicPartition
from kctl.cli.errors import CliError


@dataclass
class Gaps:
    """The gaps found while reading."""

    is_skipped: bool = False
    """Whether to go on after a gap (`--on-gap skip`)."""
    found: list[tuple[int, int]] = field(default_factory=list)
    """(first offset, end offset), in order."""

    @property
    def end_offset(self) -> int:
        """The end of the last gap; 0 without one."""
        return self.found[-1][1] if self.found else 0

    def note(self, partition: TopicPartition, first_offset: int, end_offset: int) -> None:
        """Note a gap; CliError if gaps are not skipped."""
        if not self.is_skipped:
            raise CliError(
                f"{partition}: offsets {first_offset} to {end_offset - 1} were deleted before they "
                "were read; --on-gap skip exports the rest"
            )
        self.found.append((first_offset, end_offset))
