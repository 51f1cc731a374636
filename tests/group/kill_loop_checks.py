"""What must hold after the kills, as librdkafka reads it, whichever client wrote it."""

from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.group.kill_loop_clients import GROUP, INPUT, OUTPUT, TRANSFORMERS
from tests.group.kill_loop_processes import Progress
from tests.support.cluster import wait_until
from tests.support.consumed import offset_of, partition_of, value_of

Log = dict[int, dict[int, bytes]]
"""By partition: value by offset."""

_TIMEOUT_S = 60
_LEADER_CHANGED = {
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
"""The leader changed after the metadata were read; the admin client reports it to its caller."""


def check_exactly_once(servers: str, partitions: int) -> int:
    """Check that the output is the input, in order, up to the committed offsets.

    Every input record before the offset that was committed in a transaction is in the same
    partition of the output once, and no other record is. Returns their number.
    """
    _until_no_transaction_is_open(servers, partitions)
    copied = _read(servers, OUTPUT, partitions)
    source = _read(servers, INPUT, partitions)
    for partition, end in _committed(servers, TRANSFORMERS, partitions).items():
        expected = [value for offset, value in source[partition].items() if offset < end]
        found = list(copied[partition].values())
        assert len(found) == len(set(found)), f"a record is twice in partition {partition}"
        assert found == expected, (
            f"partition {partition}: {len(found)} records in the output, {len(expected)} of the "
            f"input committed; missing {sorted(set(expected) - set(found))[:5]}, "
            f"too many {sorted(set(found) - set(expected))[:5]}"
        )
    return sum(len(found) for found in copied.values())


def check_acknowledged(servers: str, roles: Mapping[str, Progress], partitions: int) -> int:
    """Check that no acknowledged offset commit was lost; returns their number."""
    count = 0
    for group, prefix in ((GROUP, "member"), (TRANSFORMERS, "transformer")):
        stored = _committed(servers, group, partitions)
        for role, progress in roles.items():
            for detail in progress.details if role.startswith(prefix) else ():
                count += 1
                for partition, offset in _offsets(detail):
                    assert stored[partition] >= offset, f"{role}: {detail} but stored {stored}"
    return count


def check_feeders(servers: str, roles: Mapping[str, Progress], partitions: int) -> int:
    """Check that every acknowledged record is at its offset; returns their number."""
    log = _read(servers, INPUT, partitions)
    details = [
        detail for role in roles if role.startswith("feeder") for detail in roles[role].details
    ]
    for detail in details:
        partition, offset, value = detail.split()
        if int(offset) >= 0:
            assert log[int(partition)].get(int(offset)) == value.encode(), detail
    values = [value for records in log.values() for value in records.values()]
    assert len(values) == len(set(values)), "the idempotent producer's records are there twice"
    return len(details)


def _until_no_transaction_is_open(servers: str, partitions: int) -> None:
    """The clients were killed: what they left open is completed or times out."""
    places = [TopicPartition(OUTPUT, index) for index in range(partitions)]

    def ends(level: IsolationLevel) -> list[int]:
        return wait_until(lambda: _unless_leader_changed(lambda: asked(level)), "ends", _TIMEOUT_S)

    def asked(level: IsolationLevel) -> list[int]:
        admin = AdminClient({"bootstrap.servers": servers})  # a new one, without old metadata
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # confluent-kafka has no types
        found = admin.list_offsets(dict.fromkeys(places, latest), isolation_level=level)
        return [found[place].result(_TIMEOUT_S).offset for place in places]

    wait_until(
        lambda: ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED),
        "no transaction is open",
        _TIMEOUT_S,
    )


def _unless_leader_changed(ask: Callable[[], list[int]]) -> list[int] | None:
    try:
        return ask()
    except KafkaException as error:
        if error.args[0].code() not in _LEADER_CHANGED:
            raise
        return None


def _offsets(detail: str) -> list[tuple[int, int]]:
    pairs = [each.split(":") for each in detail.split()]
    return [(int(partition), int(offset)) for partition, offset in pairs]


def _consumer(servers: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )


def _committed(servers: str, group: str, partitions: int) -> dict[int, int]:
    """Committed offsets; waits while a transaction of the group is open."""
    consumer = _consumer(servers, group)
    asked = [TopicPartition(INPUT, index) for index in range(partitions)]
    try:
        return {
            each.partition: max(each.offset, 0) for each in consumer.committed(asked, _TIMEOUT_S)
        }
    finally:
        consumer.close()


def _read(servers: str, topic: str, partitions: int) -> Log:
    """Everything that a read_committed consumer reads up to the last stable offset."""
    consumer = _consumer(servers, "checker")
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    log: Log = {index: {} for index in range(partitions)}
    ended: set[int] = set()
    try:
        while len(ended) < partitions:
            for message in consumer.consume(1000, 0.5):
                if (error := message.error()) is None:
                    log[partition_of(message)][offset_of(message)] = value_of(message)
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended.add(partition_of(message))
    finally:
        consumer.close()
    return log
