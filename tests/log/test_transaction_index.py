"""The index of aborted transactions, whose file is usually missing."""

from pathlib import Path

import pytest

from broker.errors import CorruptRecord
from broker.log.files import DISK
from broker.log.transaction_index import AbortedTxn, TransactionIndex

ABORTED = AbortedTxn(producer_id=7, first_offset=10, last_offset=19, last_stable_offset=20)


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndex:
    return TransactionIndex(tmp_path / "00000000000000000000.txnindex", DISK)


def test_no_file_is_made_by_looking(index: TransactionIndex) -> None:
    assert index.collect(0, 100) == ([], False)
    assert list(index) == []
    assert not index.path.exists()


def test_what_is_aborted_after_a_look_that_found_no_file_is_found(index: TransactionIndex) -> None:
    index.collect(0, 100)
    index.append(ABORTED)
    assert index.collect(0, 100) == ([ABORTED], False)
    index.release()
    assert index.collect(0, 20) == ([ABORTED], True)


def test_a_file_of_an_earlier_life_is_found(index: TransactionIndex) -> None:
    index.append(ABORTED)
    again = TransactionIndex(index.path, DISK)
    assert again.collect(19, 100) == ([ABORTED], False)
    assert again.collect(20, 100) == ([], False)


def test_missing_file_is_looked_up_once(
    index: TransactionIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    exists = Path.exists

    def recorded(path: Path) -> bool:
        asked.append(path)
        return exists(path)

    monkeypatch.setattr(Path, "exists", recorded)
    for _ in range(3):
        index.collect(0, 100)
    assert asked == [index.path]


def test_half_an_entry_is_refused_by_name(index: TransactionIndex) -> None:
    index.path.write_bytes(b"\0" * 33)
    with pytest.raises(CorruptRecord, match="txnindex: expected entries of 34 bytes, found 33"):
        index.check(0)
