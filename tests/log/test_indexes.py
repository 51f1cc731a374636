"""The contract of both indexes, and of each."""

import ctypes
import errno
import mmap
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.log.files import DISK
from broker.log.index import Index
from broker.log.offset_index import OffsetIndex, OffsetPosition
from broker.log.time_index import TimeIndex, TimestampOffset
from tests.log.support import BreakingDisk

BASE = 100
MAX_BYTES = 1_000


def offset_index(path: Path) -> OffsetIndex:
    return OffsetIndex(path, BASE, MAX_BYTES, DISK)


def time_index(path: Path) -> TimeIndex:
    return TimeIndex(path, BASE, MAX_BYTES, DISK)


def put(index: Index, offset: int) -> None:
    """An entry for `offset`, whichever index it is."""
    if isinstance(index, OffsetIndex):
        index.append(offset, (offset - BASE) * 10)
    elif isinstance(index, TimeIndex):
        index.maybe_append(offset * 1000, offset)


def cached_pages(path: Path) -> int:
    """How many pages of a file the kernel holds in memory (Linux)."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        pages = (ctypes.c_ubyte * (len(mapped) // mmap.PAGESIZE + 1))()
        first = ctypes.c_char.from_buffer(mapped)
        libc = ctypes.CDLL(None, use_errno=True)
        address, length = ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(mapped))
        assert libc.mincore(address, length, pages) == 0
        del first
        return sum(page & 1 for page in pages)


@pytest.fixture(params=[offset_index, time_index], ids=["offset", "time"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Index:
    made = request.param(tmp_path / "index")
    assert isinstance(made, Index)
    return made


class TestBothIndexes:
    def test_new_file_is_preallocated_to_whole_entries(self, index: Index) -> None:
        assert index.entries == 0
        size = index.ENTRY.size
        assert index.path.stat().st_size == MAX_BYTES // size * size

    def test_entry_is_in_the_file_as_soon_as_it_is_added(self, index: Index) -> None:
        written = b""
        for number, offset in enumerate((101, 105, 109), start=1):
            put(index, offset)
            written = index.path.read_bytes()
            assert written[number * index.ENTRY.size :].strip(b"\0") == b""
            entry = index.ENTRY.unpack_from(written, (number - 1) * index.ENTRY.size)
            assert offset - BASE in entry

    @pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
    def test_first_entry_brings_few_pages_of_the_hole_into_memory(
        self, index: Index, tmp_path: Path
    ) -> None:
        """Linux 6.16 and later read 2 MB around it, unless told that accesses are random."""
        large = type(index)(tmp_path / "large", BASE, 10 * 1024 * 1024, DISK)
        put(large, BASE + 1)
        assert cached_pages(tmp_path / "large") <= 32

    def test_full_disk_raises_and_adds_no_entry(self, index: Index) -> None:
        put(index, 101)
        index.release()
        index._fs = BreakingDisk(fails_at=1, error=errno.ENOSPC)
        with pytest.raises(OSError, match="No space left"):
            put(index, 105)
        index._fs = DISK
        assert index.entries == 1
        put(index, 105)
        assert index.entries == 2

    def test_closed_file_holds_the_entries_and_no_more(self, index: Index) -> None:
        for offset in (101, 105, 109):
            put(index, offset)
        index.close()
        assert index.path.stat().st_size == 3 * index.ENTRY.size

    def test_reopened_file_appends_after_its_entries(self, index: Index) -> None:
        put(index, 101)
        index.close()
        reopened = type(index)(index.path, BASE, MAX_BYTES, DISK)
        put(reopened, 105)
        assert reopened.entries == 2
        reopened.close()
        assert reopened.path.stat().st_size == 2 * index.ENTRY.size

    def test_released_active_file_keeps_its_entries(self, index: Index) -> None:
        put(index, 101)
        index.release()
        put(index, 105)
        assert index.entries == 2

    def test_truncation_drops_the_offset_and_all_above(self, index: Index) -> None:
        for offset in (101, 105, 109):
            put(index, offset)
        index.truncate_to(105)
        assert index.entries == 1
        index.truncate_to(101)
        assert index.entries == 0

    def test_truncation_between_entries_keeps_the_lower(self, index: Index) -> None:
        for offset in (101, 105):
            put(index, offset)
        index.truncate_to(104)
        assert index.entries == 1

    def test_offset_beyond_int32_of_the_base_does_not_fit(self, index: Index) -> None:
        assert index.relative(BASE + 2**31 - 1) == 2**31 - 1
        for offset in (BASE - 1, BASE + 2**31):
            with pytest.raises(ValueError, match="does not fit"):
                index.relative(offset)

    def test_reset_empties_and_preallocates_again(self, index: Index) -> None:
        put(index, 101)
        index.close()
        index.reset()
        assert index.entries == 0
        assert index.path.stat().st_size > index.ENTRY.size

    def test_file_cut_inside_an_entry_is_noticed(self, index: Index) -> None:
        index.path.write_bytes(bytes(index.ENTRY.size + 1))
        assert index.has_odd_length


class TestOffsetIndex:
    @pytest.fixture
    def filled(self, tmp_path: Path) -> OffsetIndex:
        index = offset_index(tmp_path / "index")
        for offset, position in ((110, 500), (120, 900), (130, 1_700)):
            index.append(offset, position)
        return index

    @pytest.mark.parametrize(
        ("offset", "entry"),
        [
            (100, (100, 0)),
            (109, (100, 0)),
            (110, (110, 500)),
            (129, (120, 900)),
            (999, (130, 1700)),
        ],
    )
    def test_lookup_gives_the_last_entry_not_above(
        self, filled: OffsetIndex, offset: int, entry: tuple[int, int]
    ) -> None:
        assert filled.lookup(offset) == OffsetPosition(*entry)

    @given(
        offsets=st.sets(st.integers(BASE + 1, BASE + 120), min_size=1, max_size=60),
        sought=st.lists(st.integers(BASE, BASE + 130), min_size=1, max_size=20),
        cut_at=st.integers(BASE, BASE + 130),
    )
    def test_lookups_in_any_order_equal_a_linear_search(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        offsets: set[int],
        sought: list[int],
        cut_at: int,
    ) -> None:
        """A lookup begins at the slot of the one before it, which a truncation may remove."""
        index = offset_index(tmp_path_factory.mktemp("index") / "index")
        for offset in sorted(offsets):
            put(index, offset)
        for offset in sought:
            assert index.lookup(offset).offset == max({BASE} | {o for o in offsets if o <= offset})
        index.truncate_to(cut_at)
        left = {o for o in offsets if o < cut_at}
        for offset in sought:
            assert index.lookup(offset).offset == max({BASE} | {o for o in left if o <= offset})

    def test_lookup_in_an_empty_index_gives_the_base(self, tmp_path: Path) -> None:
        assert offset_index(tmp_path / "index").lookup(150) == (BASE, 0)

    @pytest.mark.parametrize(
        ("position", "offset"), [(0, 110), (500, 120), (899, 120), (1_699, 130), (1_700, None)]
    )
    def test_first_offset_beyond_a_position(
        self, filled: OffsetIndex, position: int, offset: int | None
    ) -> None:
        assert filled.first_offset_beyond(position) == offset

    def test_offsets_must_rise(self, filled: OffsetIndex) -> None:
        with pytest.raises(ValueError, match="not above"):
            filled.append(130, 2_000)

    def test_no_entries_are_left_with_the_last_slot(self, tmp_path: Path) -> None:
        index = OffsetIndex(tmp_path / "index", BASE, 16, DISK)
        index.append(101, 10)
        assert index.entries_left == 1
        index.append(102, 20)
        assert index.entries_left == 0


class TestTimeIndex:
    @pytest.fixture
    def filled(self, tmp_path: Path) -> TimeIndex:
        index = time_index(tmp_path / "index")
        for timestamp, offset in ((1_000, 110), (2_000, 120), (3_000, 130)):
            index.maybe_append(timestamp, offset)
        return index

    @pytest.mark.parametrize(
        ("timestamp", "entry"),
        [(999, (-1, 100)), (1_000, (1_000, 110)), (2_999, (2_000, 120)), (9_999, (3_000, 130))],
    )
    def test_lookup_gives_the_last_entry_not_younger(
        self, filled: TimeIndex, timestamp: int, entry: tuple[int, int]
    ) -> None:
        assert filled.lookup(timestamp) == TimestampOffset(*entry)

    def test_older_or_equal_timestamp_adds_nothing(self, filled: TimeIndex) -> None:
        filled.maybe_append(3_000, 140)
        filled.maybe_append(-1, 150)
        assert filled.last_entry == (3_000, 130)

    def test_offsets_must_not_fall(self, filled: TimeIndex) -> None:
        with pytest.raises(ValueError, match="below"):
            filled.maybe_append(4_000, 129)

    def test_keeps_one_slot_for_the_entry_of_closing(self, tmp_path: Path) -> None:
        index = TimeIndex(tmp_path / "index", BASE, 24, DISK)
        index.maybe_append(1_000, 101)
        assert index.entries_left == 0
        index.maybe_append(2_000, 102)
        assert index.entries == 2
