"""Scala's hash tables, as Kafka 3.9's tool showed them."""

from broker.model import TopicPartition
from kctl.views.kafka_text.java_order import partition_hash, string_hash, table_order

# What kafka-dump-log --transaction-log-decoder printed for a transaction on topic-0 to topic-5,
# with one partition more in each.
PRINTED = "5-0 0-0 1-1 2-2 3-3 4-4 5-5 1-0 2-1 3-2 4-3 5-4 2-0 3-1 4-2 5-3 3-0 4-1 5-2 4-0 5-1"


def test_partitions_come_in_the_order_that_kafkas_tool_prints() -> None:
    groups = [
        [TopicPartition(f"topic-{topic}", partition) for partition in range(topic + 1)]
        for topic in range(6)
    ]

    ordered = table_order(groups, partition_hash)

    assert " ".join(str(partition).removeprefix("topic-") for partition in ordered) == PRINTED


def test_large_group_gets_its_room_before_it_comes() -> None:
    numbers = list(range(40))

    assert table_order([numbers], lambda number: number) == numbers
    assert table_order([[number] for number in [17, 1, 33]], lambda number: number) == [1, 17, 33]


def test_string_hash_is_javas() -> None:
    assert string_hash("") == 0
    assert string_hash("kafka") == 101807910
    assert string_hash("polygenelubricants") == -(2**31)
    assert string_hash("🙂") == 1772965
