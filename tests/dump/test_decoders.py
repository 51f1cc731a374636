"""Records of internal topics, including invalid ones."""

import pytest

from broker.protocol.codec import encode
from broker.protocol.errors import DecodeError
from broker.protocol.messages.group_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from broker.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from broker.protocol.schema import Message
from kctl.dump.reading.decoders import (
    OFFSETS_DECODER,
    TRANSACTIONS_DECODER,
    KafkaWords,
    UnknownRecordType,
    decoder_for,
    jackson,
)

GROUP_KEY = b"\x00\x02\x00\x01g"


def versioned(message: Message, version: int) -> bytes:
    return version.to_bytes(2, "big") + encode(message, version)


COMMIT_KEY = versioned(OffsetCommitKey(group="g", topic="t", partition=3), 1)
TXN_KEY = versioned(TransactionLogKey(transactional_id="txn"), 0)


@pytest.mark.parametrize(
    ("directory", "decoder"),
    [
        ("__consumer_offsets-12", OFFSETS_DECODER),
        ("__transaction_state-0", TRANSACTIONS_DECODER),
        ("__transaction_state-0.0123456789abcdef0123456789abcdef-delete", TRANSACTIONS_DECODER),
        ("orders-0", None),
        ("__consumer_offsets", None),
    ],
)
def test_directory_name_chooses_the_decoder(directory: str, decoder: object) -> None:
    assert decoder_for(directory) is decoder


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (1, '"offset":5,"metadata":"m","commitTimestamp":7,"expireTimestamp":-1'),
        (3, '"offset":5,"leaderEpoch":-1,"metadata":"m","commitTimestamp":7'),
        (4, '"offset":5,"leaderEpoch":-1,"metadata":"m","commitTimestamp":7'),
    ],
)
def test_every_version_of_a_committed_offset_is_decoded(version: int, expected: str) -> None:
    value = versioned(OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7), version)

    key_words, value_words = OFFSETS_DECODER.kafka_words(0, COMMIT_KEY, value)

    assert key_words == '{"type":"1","data":{"group":"g","topic":"t","partition":3}}'
    assert value_words == f'{{"version":"{version}","data":{{{expected}}}}}'


def test_tombstone_has_no_value() -> None:
    assert OFFSETS_DECODER.kafka_words(0, COMMIT_KEY, None).value == "<DELETE>"
    assert TRANSACTIONS_DECODER.kafka_words(0, TXN_KEY, None).value == "<DELETE>"
    assert OFFSETS_DECODER.documents(COMMIT_KEY, None).value is None


def test_members_of_another_protocol_keep_their_bytes() -> None:
    member = MemberMetadata(member_id="m", subscription=b"\x00\x01", assignment=b"\xff\xff")
    for protocol_type in ("connect", "consumer"):
        value = GroupMetadataValue(protocol_type=protocol_type, members=[member])

        document = OFFSETS_DECODER.documents(GROUP_KEY, versioned(value, 3)).value

        assert document is not None
        (shown,) = document["data"]["members"]
        assert (shown["subscription"], shown["assignment"]) == ("AAE=", "//8=")


def test_unknown_record_type_is_skipped_with_a_message() -> None:
    assert OFFSETS_DECODER.kafka_words(42, b"\x00\x03\x00\x01g", b"") == KafkaWords(
        "Unknown record type 3 at offset 42, skipping.", None
    )
    assert TRANSACTIONS_DECODER.kafka_words(42, b"\x00\x09", b"") == KafkaWords(
        "unknown::version=9", None
    )
    with pytest.raises(UnknownRecordType):
        OFFSETS_DECODER.documents(b"\x00\x03", None)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (b"\x00", None, "Could not read version from key's buffer."),
        (b"\x00\x01\x00", None, "Could not read record with version 1 from key's buffer due to"),
        (COMMIT_KEY, b"\x00", "Could not read version from value's buffer."),
        (COMMIT_KEY, b"\x00\x63", "Could not read record with version 99 from value's buffer"),
    ],
)
def test_unreadable_group_record_is_skipped_with_a_message(
    key: bytes, value: bytes | None, expected: str
) -> None:
    key_words, value_words = OFFSETS_DECODER.kafka_words(42, key, value)

    assert key_words is not None
    assert key_words.startswith(f"Error at offset 42, skipping. {expected}")
    assert value_words is None


def test_record_without_a_key_ends_the_decoding() -> None:
    with pytest.raises(DecodeError, match="offset 42"):
        OFFSETS_DECODER.kafka_words(42, None, b"")
    with pytest.raises(DecodeError, match="offset 42"):
        TRANSACTIONS_DECODER.kafka_words(42, None, b"")


def test_transaction_is_shown_with_state_and_partitions() -> None:
    value = TransactionLogValue(
        producer_id=4,
        producer_epoch=2,
        transaction_timeout_ms=60_000,
        transaction_status=4,
        transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0])],
        transaction_last_update_timestamp_ms=9,
    )

    words = TRANSACTIONS_DECODER.kafka_words(0, TXN_KEY, versioned(value, 1))

    assert words == KafkaWords(
        "transaction_metadata::transactionalId=txn",
        "producerId:4,producerEpoch:2,state=CompleteCommit,partitions=[t-0],"
        "txnLastUpdateTimestamp=9,txnTimeoutMs=60000",
    )


def test_unknown_transaction_status_is_not_decoded() -> None:
    value = versioned(TransactionLogValue(transaction_status=9, transaction_partitions=None), 0)

    with pytest.raises(DecodeError, match="status of 0 to 7, found 9"):
        TRANSACTIONS_DECODER.documents(TXN_KEY, value)


def test_json_escapes_are_those_of_java() -> None:
    assert jackson({"a": "\x1f\n\\u001f é"}) == '{"a":"\\u001F\\n\\\\u001f é"}'
