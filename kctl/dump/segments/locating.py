"""The lookup of an offset, step by step, as the broker does it.

segment   the one with the largest base offset that is not above the offset
index     the last entry of its offset index that is not above the offset
scan      batches from that position on, until one reaches the offset
batch     the batch that contains the offset
record    the record in it
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from broker.log.layout import OFFSET_INDEX
from broker.records.batch import Batch
from broker.records.layout import Codec
from broker.records.record import Record
from kctl.cli.errors import CliError
from kctl.cli.times import iso_time
from kctl.dump.reading.files import DumpFile
from kctl.dump.reading.readers import count_offset_entries, open_offset_index, open_records
from kctl.views.text import safe_text

Row = dict[str, object]


def locate(files: Sequence[DumpFile], offset: int) -> Iterator[Row]:
    """The steps to `offset`; CliError if the log does not contain it."""
    at = bisect_right([file.base_offset for file in files], offset) - 1
    if at < 0:
        raise CliError(
            f"offset {offset} is before the log, which begins at {files[0].base_offset}",
            "kctl dump-log segments shows the segments",
        )
    file = files[at]
    yield _step(
        "segment",
        file.path,
        file.base_offset,
        detail=f"segment {at + 1} of {len(files)}: the last base offset up to {offset}",
    )
    position, row = _index_step(file, offset)
    yield row
    for scanned, (path, start, batch) in enumerate(_batches(files[at:], position)):
        if batch.last_offset >= offset:
            skipped = "1 batch" if scanned == 1 else f"{scanned} batches"
            yield _step("scan", path, None, position, detail=f"{skipped} skipped")
            yield from _found(path, start, batch, offset)
            return
    raise CliError(
        f"offset {offset} is beyond the end of the log", "kctl dump-log segments shows the segments"
    )


def _index_step(file: DumpFile, offset: int) -> tuple[int, Row]:
    path = file.sibling(OFFSET_INDEX)
    if not path.is_file():
        return 0, _step("index", path, None, 0, detail="no index file: the scan starts at 0")
    index = open_offset_index(path, file.base_offset)
    count = count_offset_entries(index)
    slot = bisect_right(range(count), offset, key=lambda one: index.entry(one).offset) - 1
    if slot < 0:
        detail = f"no entry of {count} is up to {offset}: the scan starts at 0"
        return 0, _step("index", path, None, 0, detail=detail)
    entry = index.entry(slot)
    relative = entry.offset - file.base_offset
    detail = f"entry {slot + 1} of {count}, relative offset {relative}"
    return entry.position, _step("index", path, entry.offset, entry.position, detail=detail)


def _batches(files: Sequence[DumpFile], position: int) -> Iterator[tuple[Path, int, Batch]]:
    """Batches from `position` of the first file on; later files for offsets that were removed."""
    for number, file in enumerate(files):
        for start, batch in open_records(file.path).batches(0 if number else position):
            yield file.path, start, batch


def _found(path: Path, position: int, batch: Batch, offset: int) -> Iterator[Row]:
    if batch.base_offset > offset:
        detail = f"offset {offset} was removed by compaction; this is the next batch"
    else:
        detail = batch_detail(batch)
    yield _step("batch", path, batch.base_offset, position, batch.size_in_bytes, detail)
    record = next((one for one in batch.records() if one.offset >= offset), None)
    if record is not None:
        yield _step("record", path, record.offset, detail=record_detail(record))


def record_detail(record: Record) -> str:
    """A record in words: its key, if it has one, and its time."""
    key = None if record.key is None else safe_text(record.key)[0]
    shown = f"key {key!r}, " if key is not None else ""
    return f"{shown}{iso_time(record.timestamp)}"


def batch_detail(batch: Batch) -> str:
    """A batch as text."""
    count = batch.records_count
    numbered = "" if count is None else f", {count} records"
    codec = "" if batch.codec is Codec.NONE else f", {batch.codec.name.lower()}"
    return f"offsets {batch.base_offset} to {batch.last_offset}{numbered}{codec}"


def _step(
    step: str,
    path: Path,
    offset: int | None,
    position: int | None = None,
    size: int | None = None,
    detail: str = "",
) -> Row:
    return {
        "step": step,
        "file": path.name,
        "offset": offset,
        "position": position,
        "size": size,
        "detail": detail,
    }
