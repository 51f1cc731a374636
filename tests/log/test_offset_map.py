"""The cleaner's offset map: exact, and of fixed size."""

import pytest

from broker.log.offset_map import BYTES_PER_ENTRY, OffsetMap


def test_latest_offset_of_a_key_is_kept() -> None:
    offsets = OffsetMap(BYTES_PER_ENTRY * 10)
    offsets.put(b"a", 1)
    offsets.put(b"b", 2)
    offsets.put(b"a", 3)
    assert (offsets.get(b"a"), offsets.get(b"b"), offsets.get(b"c")) == (3, 2, -1)
    assert (offsets.size, offsets.latest_offset) == (2, 3)


def test_offset_zero_is_not_mistaken_for_a_missing_key() -> None:
    offsets = OffsetMap(BYTES_PER_ENTRY * 4)
    offsets.put(b"a", 0)
    assert offsets.get(b"a") == 0


def test_full_map_finds_every_key_and_takes_no_more() -> None:
    offsets = OffsetMap(BYTES_PER_ENTRY * 100 + 7)
    assert offsets.slots == 100
    for number in range(100):
        offsets.put(b"%d" % number, number)
    assert [offsets.get(b"%d" % number) for number in range(100)] == list(range(100))
    assert offsets.get(b"other") == -1
    assert offsets.utilization == 1.0
    with pytest.raises(ValueError, match="full"):
        offsets.put(b"other", 100)
    offsets.put(b"5", 500)
    assert offsets.get(b"5") == 500


def test_no_room_for_a_single_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        OffsetMap(BYTES_PER_ENTRY - 1)
