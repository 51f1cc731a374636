"""The sound and the damaged parts of a segment, beyond the first damage.

A damaged batch whose length is still right is followed by the next one. Where the length itself is
damaged, the next sound batch is searched: bytes that look like the header of a batch of format 2,
continue the offsets, and have a valid CRC.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broker.errors import CorruptRecord
from broker.records.batch import Batch, iterate_batches

# An offset below 2^48, length, leader epoch, and magic 2; a lookahead, as matches may overlap.
_HEADER = re.compile(rb"(?=\x00\x00.{14}\x02)", re.DOTALL)


@dataclass(frozen=True)
class Part:
    """Consecutive bytes of a segment that are all sound or all damaged."""

    position: int
    data: bytes
    reason: str = ""
    """Why the bytes are damaged; empty for sound batches."""
    first_offset: int | None = None
    last_offset: int | None = None

    @property
    def is_sound(self) -> bool:
        """Whether these are whole batches with a valid CRC."""
        return not self.reason


def parts_of(path: Path) -> Iterator[Part]:
    """The whole file in parts, in order."""
    data = path.read_bytes()
    position, last_offset = 0, -1
    while position < len(data):
        end, first, last = _sound_end(data, position, last_offset)
        if end > position:
            yield Part(position, data[position:end], "", first, last)
            position, last_offset = end, last if last is not None else last_offset
        if position < len(data):
            end, reason = _damaged_end(data, position, last_offset)
            yield Part(position, data[position:end], reason)
            position = end


def _sound_end(data: bytes, start: int, last_offset: int) -> tuple[int, int | None, int | None]:
    """The end of the sound batches from `start`, and their first and last offset."""
    end, first, last = start, None, None
    while (batch := _batch(data, end)) and not _problem(batch, last_offset):
        first = batch.header.base_offset if first is None else first
        last = last_offset = batch.last_offset
        end += batch.size_in_bytes
    return end, first, last


def _damaged_end(data: bytes, start: int, last_offset: int) -> tuple[int, str]:
    """The position of the next sound batch (the end if no batch follows), and the damage here."""
    batch = _batch(data, start)
    reason = _problem(batch, last_offset) if batch else "no whole batch"
    for match in _HEADER.finditer(data, start + 1):
        found = _batch(data, match.start())
        if found and not _problem(found, last_offset):
            return match.start(), reason
    return len(data), reason


def _batch(data: bytes, position: int) -> Batch | None:
    """The whole batch at a position; None if the bytes are not one."""
    try:
        return next(iterate_batches(memoryview(data)[position:]), None)
    except CorruptRecord:
        return None


def _problem(batch: Batch, last_offset: int) -> str:
    """Why a broker would not accept the batch; empty if it would."""
    if not batch.is_crc_valid():
        return "bad crc"
    if batch.header.base_offset <= last_offset:
        return "offsets go back"
    try:
        batch.record_tuples()
    except CorruptRecord as error:
        return str(error)
    return ""
