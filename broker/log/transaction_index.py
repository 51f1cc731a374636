"""The aborted transactions of a segment, which a read_committed fetch response must list.

The file exists only where a transaction was aborted. Transactions are in the order in which they
ended, in the segment that holds their abort marker.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from broker.errors import CorruptRecord
from broker.log.files import FileSystem, OpenFile
from broker.log.layout import ABORTED_TXN, ABORTED_TXN_VERSION


class AbortedTxn(NamedTuple):
    """An aborted transaction: its producer, its offsets, marker included, and what was stable then.

    `last_stable_offset` is that of the moment the marker was written; it bounds the search.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The file of one segment. Invariant: last offsets increase from entry to entry.

    Field `_is_missing`: whether there is no file, which is the usual case. It is remembered because
    each fetch checks the indexes of all segments from its offset on, and must not use the disk.
    """

    __slots__ = ("_file", "_fs", "_is_missing", "path")

    def __init__(self, path: Path, fs: FileSystem) -> None:
        self.path = path
        self._fs = fs
        self._file: OpenFile | None = None
        self._is_missing = False

    def _opened(self, *, create: bool = False) -> OpenFile | None:
        if self._file is None and (create or not self._is_missing):
            self._is_missing = not create and not self.path.exists()
            if not self._is_missing:
                self._file = self._fs.open_file(self.path, create=create)
        return self._file

    @property
    def exists(self) -> bool:
        """Whether the file exists; if not, no transaction was aborted here."""
        return not self._is_missing and self._opened() is not None

    def __iter__(self) -> Iterator[AbortedTxn]:
        """Every aborted transaction; CorruptRecord names the file if it is malformed."""
        file = self._opened()
        data = b"" if file is None else file.read(0, file.size())
        if len(data) % ABORTED_TXN.size:
            raise CorruptRecord(
                f"{self.path}: expected entries of {ABORTED_TXN.size} bytes, found {len(data)}"
            )
        for version, *fields in ABORTED_TXN.iter_unpack(data):
            if version != ABORTED_TXN_VERSION:
                raise CorruptRecord(
                    f"{self.path}: expected version {ABORTED_TXN_VERSION}, found {version}"
                )
            yield AbortedTxn(*fields)

    def check(self, base_offset: int) -> None:
        """CorruptRecord unless every entry could belong to a segment from `base_offset` on."""
        for txn in self:
            if txn.last_offset < base_offset:
                raise CorruptRecord(
                    f"{self.path}: expected offsets from {base_offset}, found {txn.last_offset}"
                )

    def append(self, txn: AbortedTxn) -> None:
        """Add a transaction that has just been aborted."""
        file = self._opened(create=True)
        if file is not None:
            self._fs.write(file, [ABORTED_TXN.pack(ABORTED_TXN_VERSION, *txn)], file.size())

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """Those that overlap [fetch_offset, upper_bound), and whether to skip later segments.

        A transaction in a later segment can still have begun below `upper_bound`, unless one here
        ended when everything below was stable.
        """
        found: list[AbortedTxn] = []
        for txn in self:
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions whose marker is at `offset` or above."""
        file = self._opened()
        if file is not None:
            kept = sum(txn.last_offset < offset for txn in self)
            self._fs.truncate(file, kept * ABORTED_TXN.size)

    def reset(self) -> None:
        """Remove all entries; an existing file becomes empty."""
        file = self._opened()
        if file is not None:
            self._fs.truncate(file, 0)

    def open_file(self) -> OpenFile | None:
        """The file, for a caller that flushes it; None if it does not exist."""
        return self._opened()

    def release(self) -> None:
        """Release the descriptor; the next use opens the file again."""
        self._file = None
