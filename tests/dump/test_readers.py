"""Read-only readers: damage, empty batches, progress."""

import io
import os
from pathlib import Path

import pytest

from broker.errors import CorruptRecord
from broker.log.layout import OFFSET_ENTRY, TIME_ENTRY
from broker.records.builder import BatchSettings, build_batch, build_empty_batch
from kctl.dump.progress import progress_bar
from kctl.dump.reading.files import DumpFile, FileKind
from kctl.dump.reading.readers import (
    count_offset_entries,
    last_time_entry,
    open_offset_index,
    open_records,
    open_time_index,
)
from tests.support.kctl import Kctl

NOW_MS = 1_700_000_000_000
NAME = f"{0:020d}.log"


def large_segment(path: Path, size: int) -> int:
    """Write batches of about 10 KB up to `size`; where the last one ends."""
    offset = 0
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(build_batch([(offset, NOW_MS, None, bytes(10_000), ())], BatchSettings()))
            offset += 1
        return file.tell()


def test_damage_is_reported_with_its_position_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / NAME
    end = large_segment(path, 2_500_000)
    with path.open("ab") as file:
        file.write(bytes(100))

    with pytest.raises(CorruptRecord) as caught:
        list(open_records(path).batches())

    assert str(caught.value) == (
        f"{path} position {end}: expected a batch length of at least 14, found 0"
    )


def test_regression_end_of_a_preallocated_index_is_found_without_reading_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"{0:020d}.index"
    path.write_bytes(b"".join(OFFSET_ENTRY.pack(at, at * 100) for at in range(1, 700)))
    os.truncate(path, 10 * 1024 * 1024)
    times = tmp_path / f"{0:020d}.timeindex"
    times.write_bytes(b"".join(TIME_ENTRY.pack(NOW_MS + at, at) for at in range(700)))
    os.truncate(times, 10 * 1024 * 1024 // TIME_ENTRY.size * TIME_ENTRY.size)
    lengths = []
    really_read = os.pread

    def watched(fd: int, length: int, position: int) -> bytes:
        lengths.append(length)
        return really_read(fd, length, position)

    monkeypatch.setattr(os, "pread", watched)

    assert count_offset_entries(open_offset_index(path, 0)) == 699
    assert last_time_entry(open_time_index(times, 0)) == (NOW_MS + 699, 699)
    assert 0 < sum(lengths) < 1000


@pytest.mark.parametrize("size", [0, 4096])
def test_index_without_entries_has_no_last_entry(tmp_path: Path, size: int) -> None:
    for name in ("index", "timeindex"):
        (tmp_path / f"{0:020d}.{name}").write_bytes(bytes(size))

    assert count_offset_entries(open_offset_index(tmp_path / f"{0:020d}.index", 0)) == 0
    assert last_time_entry(open_time_index(tmp_path / f"{0:020d}.timeindex", 0)) is None


def test_torn_batch_is_not_read_for_the_length_it_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAME
    large_segment(path, 50_000)
    whole = len(list(open_records(path).batches()))
    with path.open("ab") as file:
        file.write((10).to_bytes(8, "big") + (2**31 - 1).to_bytes(4, "big") + bytes(3_000_000))
    lengths = []
    really_read = os.pread

    def watched(fd: int, length: int, position: int) -> bytes:
        lengths.append(length)
        return really_read(fd, length, position)

    monkeypatch.setattr(os, "pread", watched)

    assert len(list(open_records(path).batches())) == whole
    assert max(lengths) <= 1024 * 1024


def test_missing_index_is_not_created_by_reading(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_offset_index(tmp_path / "00000000000000000000.index", 0)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [["--format", "kafka", "--print-data-log"], ["--records", "-o", "json"], ["--stats"]],
)
def test_batch_emptied_by_the_cleaner_has_no_records(
    kctl: Kctl, tmp_path: Path, options: list[str]
) -> None:
    settings = BatchSettings(producer_id=1, producer_epoch=0, base_sequence=0)
    path = tmp_path / NAME
    path.write_bytes(build_empty_batch(0, 9, NOW_MS, settings))

    result = kctl("dump-log", str(path), *options)

    assert (result.stderr, result.exit_code) == ("", 0)
    assert "offset: 0 " not in result.output
    assert kctl("dump-log", "check", str(tmp_path)).output.count(NAME) == 0


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("is_wanted", "is_shown"), [(True, True), (False, False)])
def test_progress_is_shown_on_a_terminal_if_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_wanted: bool, is_shown: bool
) -> None:
    path = tmp_path / NAME
    path.write_bytes(bytes(1000))
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    with progress_bar(is_wanted=is_wanted) as watch:
        watch(DumpFile(path, FileKind.LOG))(1000)

    assert (NAME in terminal.getvalue()) is is_shown


def test_no_progress_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"x")
    with progress_bar(is_wanted=True) as watch:
        watch(DumpFile(path, FileKind.LOG))(1)

    assert capsys.readouterr() == ("", "")
