"""Expected values are what Java's String.hashCode and Kafka's own log directory give."""

import pytest

from broker.txn.partition_for import partition_for


@pytest.mark.parametrize(
    ("transactional_id", "partition"),
    [
        ("golden-txn-1", 36),  # tests/golden/logs/magic2
        ("golden-txn-0", 37),
        ("", 0),
        ("polygenelubricants", 0),  # hashes to the smallest int, whose abs Java does not have
        ("é", 33),
        ("😀", 49),  # two UTF-16 units
    ],
)
def test_transactional_ids_lie_where_kafka_puts_them(transactional_id: str, partition: int) -> None:
    assert partition_for(transactional_id, 50) == partition
