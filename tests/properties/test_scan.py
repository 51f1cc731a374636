"""The scan of a client's records: both forms agree, and the decoder reads what passes."""

from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.errors import ApiError, CorruptRecord, ErrorCode
from broker.records.builder import encode_records, varint
from broker.records.decoder import decode_records
from broker.records.record import RecordTuple
from tests.properties.test_records import near_records, record_lists
from tests.records.forms import PURE_SCAN, SCANS

BASE_TIMESTAMP = 1_700_000_000_000
MAX_INT64 = 2**63 - 1
_NOT_ASCII_HEADER = bytes.fromhex("1600ff9fabfef962000101001e00ff9fabfef9620201010204c28001")
"""Two records, the second with the header key U+0080, which Kafka may write differently."""


@st.composite
def mutated_records(draw: st.DrawFn) -> tuple[bytes, int]:
    """Valid records with bytes changed, cut or added, and a count that is usually right."""
    rows = draw(record_lists())
    data = bytearray(encode_records(rows, rows[0][0], BASE_TIMESTAMP))
    for position in draw(st.lists(st.integers(0, len(data) - 1), max_size=3)):
        kind = draw(st.sampled_from(["set", "flip", "cut", "add"]))
        at = min(position, len(data) - 1)
        if kind == "set":
            data[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        elif kind == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut" and len(data) > 1:
            del data[at]
        else:
            data.insert(at, draw(st.integers(0, 255)))
    return bytes(data), len(rows) + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))


anything = st.tuples(near_records | st.binary(max_size=100), st.integers(0, 10))


def verdict(
    form: ModuleType,
    data: bytes,
    count: int,
    is_compressed: bool,
    check_sizes: bool,
    check_form: bool = False,
) -> object:
    """All that a scan finds, or the error that it raises."""
    suspects: list[object] = []
    limits = (BASE_TIMESTAMP - 5, BASE_TIMESTAMP + 5)
    try:
        found = form.scan_records(
            memoryview(data),
            0,
            count,
            BASE_TIMESTAMP,
            is_compressed,
            check_sizes,
            suspects,
            *limits,
            check_form=check_form,
        )
    except ApiError as error:
        return error.code, error.message
    return found, suspects


def verdict_in_pieces(form: ModuleType, data: bytes, count: int, check_sizes: bool) -> object:
    """The same of a scan in pieces of two records."""
    suspects: list[object] = []
    limits = (BASE_TIMESTAMP - 5, BASE_TIMESTAMP + 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(form, "PIECE_RECORDS", 2)
        try:
            found = form.scan_in_pieces(
                memoryview(data), count, BASE_TIMESTAMP, check_sizes, suspects, *limits
            )
        except ApiError as error:
            return error.code
    return found, suspects


@given(mutated_records() | anything, st.booleans(), st.booleans(), st.booleans())
def test_compiled_and_plain_scans_give_the_same_verdict(
    sent: tuple[bytes, int], is_compressed: bool, check_sizes: bool, check_form: bool
) -> None:
    data, count = sent
    expected = verdict(PURE_SCAN, data, count, is_compressed, check_sizes, check_form)
    for form in SCANS:
        assert verdict(form, data, count, is_compressed, check_sizes, check_form) == expected


@given(mutated_records() | anything, st.booleans())
@example((_NOT_ASCII_HEADER, 2), True)
def test_scan_in_pieces_has_the_same_verdict(sent: tuple[bytes, int], check_sizes: bool) -> None:
    """Records with checked sizes are kept in a rebuilt batch, so their form is checked too."""
    data, count = sent
    for form in SCANS:
        expected = verdict(form, data, count, True, check_sizes, check_form=check_sizes)
        is_error = isinstance(expected, tuple) and isinstance(expected[0], ErrorCode)
        found = verdict_in_pieces(form, data, count, check_sizes)
        assert found == (expected[0] if is_error else expected)  # type: ignore[index]


@given(mutated_records() | anything)
def test_records_pass_the_scan_exactly_when_the_decoder_can_read_them(
    sent: tuple[bytes, int],
) -> None:
    data, count = sent
    rows: list[RecordTuple] | None
    try:
        rows = decode_records(data, count, 0, BASE_TIMESTAMP)
    except CorruptRecord:
        rows = None
    for form in SCANS:
        try:
            scan = form.scan_records(memoryview(data), 0, count, BASE_TIMESTAMP, False, True)
        except ApiError:
            assert rows is None
            continue
        assert rows is not None
        times = [row[1] for row in rows if row[1] != -1]
        assert scan == (
            min(times, default=MAX_INT64),
            max([-1, *times]),
            sum(row[2] is None for row in rows),
            [row[0] for row in rows] == list(range(count)),
            len(data),
        )


@given(st.integers(0, 2**32 - 1), st.integers(0, 15))
def test_varints_lose_the_bits_beyond_32(raw: int, excess: int) -> None:
    five = bytes(
        [*((raw >> 7 * at & 127) | 128 for at in range(4)), raw >> 28 & 15 | (excess & 7) << 4]
    )
    body = b"\0\0" + five + b"\1\1\0"
    for form in SCANS:
        suspects: list[tuple[int, int, int, bool]] = []
        data = memoryview(varint(len(body)) + body)
        form.scan_records(data, 0, 1, 0, False, True, suspects)
        assert suspects[0][2] == (raw >> 1) ^ -(raw & 1)
