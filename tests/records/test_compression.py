"""The codecs: Kafka's framings in both directions, Kafka's levels, and bounded output."""

import gzip

import cramjam
import pytest

from broker.errors import CorruptRecord
from broker.records.batch import Batch
from broker.records.compression import compress, decompress, is_level_valid
from broker.records.layout import MESSAGE_V0, MESSAGE_V1, Codec
from tests.records.golden import batches

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"".join(b"record %d of many, " % number for number in range(20_000))
NOISE = bytes(value * value * 31 % 251 ^ value >> 8 & 0xFF for value in range(100_000))
SAMPLES = {"nothing": b"", "a byte": b"x", "text": TEXT, "noise": NOISE, "zeros": bytes(300_000)}


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
@pytest.mark.parametrize("codec", Codec)
def test_decompressed_is_what_was_compressed(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, 1), (Codec.GZIP, -1), (Codec.LZ4, 1), (Codec.LZ4, 17), (Codec.ZSTD, -7)],
)
def test_levels_change_the_size_not_the_content(codec: Codec, level: int) -> None:
    assert decompress(codec, compress(codec, TEXT, level)) == TEXT


def test_a_thorough_level_compresses_better_than_a_quick_one() -> None:
    assert len(compress(Codec.GZIP, TEXT, 9)) < len(compress(Codec.GZIP, TEXT, 1))
    assert len(compress(Codec.LZ4, TEXT, 17)) < len(compress(Codec.LZ4, TEXT))


@pytest.mark.parametrize(
    ("codec", "level", "is_valid"),
    [
        (Codec.GZIP, -1, True),
        (Codec.GZIP, 0, False),
        (Codec.GZIP, 10, False),
        (Codec.LZ4, 0, False),
        (Codec.LZ4, 18, False),
        (Codec.ZSTD, -131072, True),
        (Codec.ZSTD, 0, True),
        (Codec.ZSTD, 23, False),
        (Codec.SNAPPY, 1, False),
        (Codec.NONE, 1, False),
    ],
)
def test_levels_are_valid_where_kafka_takes_them(codec: Codec, level: int, is_valid: bool) -> None:
    assert is_level_valid(codec, level) is is_valid
    if not is_valid:
        with pytest.raises(ValueError, match=f"no compression level {level}"):
            compress(codec, b"", level)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_output_is_bounded_by_what_the_caller_allows(codec: Codec) -> None:
    bomb = compress(codec, bytes(50_000_000))

    with pytest.raises(CorruptRecord, match=r"at most \d+ bytes"):
        decompress(codec, bomb, max_bytes=1_000_000)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_bound_itself_is_allowed(codec: Codec) -> None:
    assert decompress(codec, compress(codec, TEXT), max_bytes=len(TEXT)) == TEXT
    with pytest.raises(CorruptRecord):
        decompress(codec, compress(codec, TEXT), max_bytes=len(TEXT) - 1)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_cut_or_foreign_bytes_are_corrupt(codec: Codec) -> None:
    whole = compress(codec, TEXT)
    for damaged in (whole[:-1], whole[: len(whole) // 2], b"nonsense" * 10, b"\xff" * 40):
        with pytest.raises(CorruptRecord):
            decompress(codec, damaged)


def test_snappy_is_framed_in_blocks_of_32_kb() -> None:
    framed = compress(Codec.SNAPPY, bytes(32 * 1024 + 1))

    assert framed[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    length = int.from_bytes(framed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(framed[20 : 20 + length]) == 32 * 1024
    assert int.from_bytes(framed[20 + length : 24 + length], "big") == len(framed) - 24 - length


def test_raw_snappy_without_framing_is_read() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


@pytest.mark.parametrize("length", [-1, 1000, 2**31 - 1])
def test_a_snappy_block_with_a_lying_length_is_corrupt(length: int) -> None:
    header = compress(Codec.SNAPPY, b"")

    with pytest.raises(CorruptRecord, match=f"at most 3 bytes at 20, found {length}"):
        decompress(Codec.SNAPPY, header + length.to_bytes(4, "big", signed=True) + b"abc")


def test_less_than_a_length_after_the_last_snappy_block_ends_the_stream() -> None:
    whole = compress(Codec.SNAPPY, TEXT)
    assert decompress(Codec.SNAPPY, whole + b"\0\0\0") == TEXT  # as SnappyInputStream


def test_lz4_end_mark_with_the_bit_for_uncompressed_ends_the_frame() -> None:
    whole = compress(Codec.LZ4, TEXT)
    assert decompress(Codec.LZ4, whole[:-4] + b"\0\0\0\x80") == TEXT  # as Kafka


def test_lz4_is_framed_as_kafka_frames_it() -> None:
    incompressible = bytes(range(256))
    frame = compress(Codec.LZ4, incompressible)

    assert frame[:7].hex() == "04224d18604082"  # 64 KB, independent blocks, no checksums
    assert frame[7:11] == (len(incompressible) | 0x80000000).to_bytes(4, "little")
    assert frame[11:] == incompressible + bytes(4)


def test_the_lz4_of_format_0_has_the_wrong_checksum_and_is_read_with_any() -> None:
    frame = bytearray(compress(Codec.LZ4, TEXT, magic=0))

    assert frame[:7].hex() == "04224d1860401a"
    with pytest.raises(CorruptRecord, match="headerChecksum"):
        decompress(Codec.LZ4, frame)
    for checksum in (0x1A, 0x82, 0x00):
        frame[6] = checksum
        assert decompress(Codec.LZ4, frame, magic=0) == TEXT


def checksummed_lz4(*, block_linked: bool) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=True, block_linked=block_linked)
    compressor.compress(TEXT)
    return bytes(compressor.finish())


def test_lz4_frames_with_a_content_checksum_are_read() -> None:
    frame = checksummed_lz4(block_linked=False)

    assert frame[4] & 0x04
    for content_checksum in (frame[-4:], b"\0\0\0\0"):  # Kafka does not check it
        assert decompress(Codec.LZ4, frame[:-4] + content_checksum) == TEXT
        assert decompress(Codec.LZ4, frame[:-4] + content_checksum, magic=0) == TEXT
    with pytest.raises(CorruptRecord, match="cut short"):
        decompress(Codec.LZ4, frame[:-4])


def test_lz4_blocks_that_depend_on_each_other_are_corrupt_as_in_kafka() -> None:
    with pytest.raises(CorruptRecord, match="descriptor"):
        decompress(Codec.LZ4, checksummed_lz4(block_linked=True))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4])
def test_bytes_after_the_compressed_stream_are_ignored_as_in_kafka(codec: Codec) -> None:
    assert decompress(codec, compress(codec, TEXT) + b"junkjunkjunk") == TEXT


def test_snappy_streams_are_read_one_after_the_other() -> None:
    whole = compress(Codec.SNAPPY, TEXT)
    assert decompress(Codec.SNAPPY, whole + whole) == TEXT + TEXT


def test_the_lz4_of_format_0_may_name_its_content_size() -> None:
    blocks = compress(Codec.LZ4, TEXT)[7:]
    size = len(TEXT).to_bytes(8, "little")

    frame = b"\x04\x22\x4d\x18\x68\x40" + size + b"?" + blocks

    assert decompress(Codec.LZ4, frame, magic=0) == TEXT


def test_gzip_members_are_read_one_after_the_other() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_what_kafka_compressed_in_old_formats_has_our_framing(magic: int, codec: Codec) -> None:
    for batch in batches(f"magic{magic}/old-{codec.name.lower()}-0"):
        payload = wrapped_value(batch)
        data = decompress(codec, payload, magic=magic)
        framing = {Codec.GZIP: 3, Codec.SNAPPY: 16, Codec.LZ4: 7}[codec]
        assert compress(codec, data, magic=magic)[:framing] == payload[:framing]


def wrapped_value(batch: Batch) -> bytes:
    fixed = MESSAGE_V0 if batch.magic == 0 else MESSAGE_V1
    return bytes(batch.view[fixed.size + 8 :])
