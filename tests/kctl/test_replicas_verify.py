"""Comparison of replicas: same, lagging, corrupt, diverged; compacted logs record by record."""

from collections.abc import Sequence
from datetime import datetime

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.records.builder import build_batch
from broker.records.record import Record
from kctl.model.replica_checks import Fetched
from kctl.plans.replica_comparison import ReplicaCheck
from kctl.views.kafka_text.replica_verification import finding_lines, lag_line, start_line

T0 = TopicPartition("t", 0)
NOON = datetime(2026, 11, 16, 12, 0, 0, 7000)


def batch(base_offset: int, values: Sequence[bytes]) -> bytes:
    records = [
        Record(base_offset + index, 1000 + index, b"k%d" % index, value)
        for index, value in enumerate(values)
    ]
    return bytes(build_batch(records))


def check(*, is_compacted: bool = False) -> ReplicaCheck:
    return ReplicaCheck(T0, (1, 2), 0, is_compacted)


def test_equal_batches_are_same_up_to_the_high_watermark() -> None:
    data = batch(0, [b"a", b"b"]) + batch(2, [b"c"])
    one = check()
    assert one.compare({1: Fetched(3, data), 2: Fetched(3, data)})
    assert (one.result().status, one.offset, one.result().lag, one.is_over) == ("same", 3, 0, True)


def test_batches_above_the_high_watermark_are_not_compared() -> None:
    same, new = batch(0, [b"a"]), batch(1, [b"b"])
    one = check()
    one.compare({1: Fetched(1, same + new), 2: Fetched(1, same + batch(1, [b"x"]))})
    assert (one.result().status, one.offset) == ("same", 1)


def test_replica_with_less_is_behind_until_it_has_caught_up() -> None:
    first, second = batch(0, [b"a"]), batch(1, [b"b"])
    one = check()
    assert one.compare({1: Fetched(2, first + second), 2: Fetched(1, first)})
    assert (one.result().status, one.result().lag, one.is_over) == ("lagging", 1, False)
    assert not one.compare({1: Fetched(2, second), 2: Fetched(1, b"")})
    assert one.compare({1: Fetched(2, second), 2: Fetched(2, second)})
    assert (one.result().status, one.result().lag, one.is_over) == ("same", 0, True)


def test_other_checksum_at_the_same_offset_is_found_and_named() -> None:
    one = check()
    one.compare({1: Fetched(1, batch(0, [b"a"])), 2: Fetched(1, batch(0, [b"b"]))})
    assert one.result().status == "differs"
    (finding,) = one.findings
    assert finding.text.startswith("unmatched checksum at offset 0; replica 1's checksum ")
    (line,) = finding_lines(NOON, [one.result()])
    assert line.startswith("2026-11-16 12:00:00,007: partition t-0 has unmatched checksum at")


def test_other_offsets_end_the_comparison() -> None:
    one = check()
    one.compare({1: Fetched(2, batch(0, [b"a"])), 2: Fetched(2, batch(0, [b"a", b"b"]))})
    assert one.is_over
    assert [finding.text for finding in one.findings] == [
        "replica 1's offset 0 doesn't match replica 2's offset 1"
    ]
    assert list(finding_lines(NOON, [one.result()])) == [
        "2026-11-16 12:00:00,007: partition t-0: replica 1's offset 0 doesn't match replica 2's"
        " offset 1"
    ]


def test_corrupt_bytes_are_found_although_checksums_agree() -> None:
    sound = batch(0, [b"aaaa"])
    damaged = bytearray(sound)
    damaged[-2] ^= 1
    one = check()
    one.compare({1: Fetched(1, sound), 2: Fetched(1, bytes(damaged))})
    assert [finding.text for finding in one.findings] == ["offset 0: corrupt batch on broker 2"]
    assert (
        list(finding_lines(NOON, [one.result()])) == []
    )  # Kafka's tool does not look at the bytes


def test_replica_that_returns_an_error_is_a_finding() -> None:
    one = check()
    refused = Fetched(-1, b"", ErrorCode.OFFSET_OUT_OF_RANGE)
    one.compare({1: Fetched(1, batch(0, [b"a"])), 2: refused})
    assert (one.result().status, one.is_over, one.result().lag) == ("differs", True, 1)
    assert one.findings[0].text == "broker 2 did not return offset 0: OFFSET_OUT_OF_RANGE"


def test_replicas_are_compared_without_a_broker_that_does_not_answer() -> None:
    one = ReplicaCheck(T0, (1, 2, 3), 0)
    one.compare({1: Fetched(1, batch(0, [b"a"])), 3: Fetched(1, batch(0, [b"a"]))})
    assert (one.result().status, one.is_over, one.offset) == ("incomplete", True, 1)
    assert (one.answering, one.result().unanswered) == ([1, 3], (2,))
    differing = ReplicaCheck(T0, (1, 2, 3), 0)
    differing.compare({1: Fetched(1, batch(0, [b"a"])), 3: Fetched(1, batch(0, [b"b"]))})
    assert differing.result().status == "differs"


def test_partition_without_any_answer_ends_the_comparison() -> None:
    one = check()
    assert not one.compare({})
    assert (one.result().status, one.is_over, one.result().unanswered) == (
        "incomplete",
        True,
        (1, 2),
    )


def test_compacted_replicas_may_lack_records_but_not_differ_in_them() -> None:
    whole = batch(0, [b"a", b"b"]) + batch(2, [b"c"])
    cleaned = batch(1, [b"b"]) + batch(2, [b"c"])
    one = check(is_compacted=True)
    # The key of the cleaned batch's record is another one, as its place in its batch is.
    one.compare({1: Fetched(3, whole), 2: Fetched(3, batch(2, [b"c"]))})
    assert (one.result().status, one.offset) == ("same", 3)
    other = check(is_compacted=True)
    other.compare({1: Fetched(3, whole), 2: Fetched(3, cleaned)})
    assert [finding.text for finding in other.findings] == ["offset 1: brokers 1 and 2 differ"]


def test_compacted_replica_that_cannot_be_read_is_found() -> None:
    data = bytearray(batch(0, [b"aaaa"]))
    data[61] = 0x7F  # the length of the first record
    one = check(is_compacted=True)
    one.compare({1: Fetched(1, batch(0, [b"aaaa"])), 2: Fetched(1, bytes(data))})
    assert one.findings[0].text.startswith("broker 2: ")


def test_text_of_the_largest_lag_equals_kafkas_tool() -> None:
    behind, done = check(), ReplicaCheck(TopicPartition("u", 1), (1,), 5)
    behind.compare({1: Fetched(4, b""), 2: Fetched(4, b"")})
    done.compare({1: Fetched(5, b"")})
    assert start_line(NOON) == "2026-11-16 12:00:00,007: verification process is started"
    assert lag_line(NOON, [done.result(), behind.result()]) == (
        "2026-11-16 12:00:00,007: max lag is 4 for partition t-0 at offset 0 among 2 partitions"
    )


def test_next_part_begins_where_the_comparison_ended() -> None:
    one = check(is_compacted=True)
    data = batch(0, [b"a", b"b"])
    one.compare({1: Fetched(2, data), 2: Fetched(2, data)})
    following = one.next_part()
    assert (following.from_offset, following.is_over, following.is_compacted) == (2, False, True)
    more = batch(2, [b"c"])
    following.compare({1: Fetched(3, more), 2: Fetched(3, more)})
    assert (following.result().status, following.offset) == ("same", 3)
