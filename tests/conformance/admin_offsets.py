"""Conversations about partitions: offsets by time and epoch, deleted records.

The records have timestamps of 1970, so their topics have unlimited retention.
"""

from typing import Any

from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.records.builder import PLAIN, BatchSettings, build_batch
from tests.conformance.admin_topics import create, topic
from tests.conformance.exchange import Exchange, Talk, Until, carried

SPECIAL_TIMES = (-1, -2, -3, -4, -5, -6, -100)


def produce(
    name: str,
    *times: int,
    settings: BatchSettings = PLAIN,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """One batch in partition 0, with a record for every time."""
    records = [(n, time, b"key", b"value %d" % n, ()) for n, time in enumerate(times)]
    data = PartitionProduceData(index=0, records=build_batch(records, settings))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=name, partition_data=[data])],
    )


def list_offsets(version: int, name: str, *times: int, replica_id: int = -1, **fields: Any) -> Any:
    """Request the offset of each time."""
    partition_fields = {"current_leader_epoch", "max_num_offsets", "partition_index"}
    own = {key: fields.pop(key) for key in partition_fields & fields.keys()}
    partitions = [
        ListOffsetsPartition(**({"partition_index": 0} | own), timestamp=time) for time in times
    ]
    return carried(
        ListOffsetsRequest,
        version,
        replica_id=replica_id,
        topics=[ListOffsetsTopic(name=name, partitions=partitions)],
        **fields,
    )


# --- list offsets ---------------------------------------------------------------------------------


def offsets_by_time(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a", retention_ms="-1"))
    if version > 0:  # version 0 goes by the age of files, which differs between brokers
        for time in (*SPECIAL_TIMES, 0):
            yield list_offsets(version, f"{prefix}a", time)
    yield produce(f"{prefix}a", 1000, 3000, 2000)
    yield produce(f"{prefix}a", 3000)
    yield produce(f"{prefix}a", 2500, 2600)
    for time in (-1, -2, *SPECIAL_TIMES[2:]):
        yield list_offsets(version, f"{prefix}a", time)
        yield list_offsets(version, f"{prefix}a", time, replica_id=-2)
        yield list_offsets(version, f"{prefix}a", time, isolation_level=1)
    if version > 0:
        for time in (0, 1000, 1001, 2400, 2500, 2601, 3000, 3001):
            yield list_offsets(version, f"{prefix}a", time)


def offsets_of_what_is_not_there(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a"))
    yield list_offsets(version, f"{prefix}none", -1)
    yield list_offsets(version, f"{prefix}none", -9)
    yield list_offsets(version, f"{prefix}a", -1, partition_index=7)
    yield list_offsets(version, f"{prefix}a", -1, partition_index=-1)
    yield list_offsets(version, f"{prefix}/", -1)
    yield carried(ListOffsetsRequest, version, replica_id=-1, topics=[])


def offsets_asked_for_twice(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a"))
    yield list_offsets(version, f"{prefix}a", -1, -2)


def offsets_in_another_epoch(prefix: str, version: int) -> Talk:
    if version < 4:
        return
    yield create(topic(f"{prefix}a"))
    for epoch in (-1, 0, 1, 7):
        yield list_offsets(version, f"{prefix}a", -1, current_leader_epoch=epoch)
    yield list_offsets(version, f"{prefix}a", -1, current_leader_epoch=1, replica_id=-2)


def several_old_style_offsets(prefix: str, version: int) -> Talk:
    if version > 0:
        return
    yield create(topic(f"{prefix}a", retention_ms="-1"))
    yield list_offsets(version, f"{prefix}a", -1, max_num_offsets=5)
    yield produce(f"{prefix}a", 1000, 2000)
    for count in (0, 1, 2, 100):
        yield list_offsets(version, f"{prefix}a", -1, max_num_offsets=count)
        yield list_offsets(version, f"{prefix}a", -2, max_num_offsets=count)
    yield list_offsets(version, f"{prefix}a", 0, max_num_offsets=5)
    yield list_offsets(version, f"{prefix}a", 1 << 60, max_num_offsets=5)


def offsets_while_a_transaction_is_open(prefix: str, version: int) -> Talk:
    if version < 2:  # there is no read_committed yet
        return
    name = f"{prefix}a"
    yield create(topic(name, retention_ms="-1"))
    yield produce(name, 1000)
    yield Until(  # which makes the broker create the coordinator's topic
        FindCoordinatorRequest(key_type=1, coordinator_keys=[prefix]),
        lambda answer: answer.coordinators[0].error_code == 0,
    )
    producer = yield Until(
        InitProducerIdRequest(transactional_id=prefix, transaction_timeout_ms=60_000),
        lambda answer: answer.error_code == 0,
    )
    own: dict[str, Any] = {
        "transactional_id": prefix,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
    }
    added = AddPartitionsToTxnTopic(name=name, partitions=[0])
    yield AddPartitionsToTxnRequest(
        transactions=[AddPartitionsToTxnTransaction(**own, topics=[added])]
    )
    settings = BatchSettings(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    yield produce(name, 5000, settings=settings, transactional_id=prefix)
    for time in (-1, -2, -3, 1000, 5000):
        for isolation_level in (0, 1):
            yield list_offsets(version, name, time, isolation_level=isolation_level)
    yield EndTxnRequest(**own, committed=True)
    yield Until(
        list_offsets(version, name, -1, isolation_level=1),
        lambda answer: answer.topics[0].partitions[0].offset == 3,
    )


# --- delete records -------------------------------------------------------------------------------


def _delete(name: str, *wanted: tuple[int, int]) -> DeleteRecordsRequest:
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in wanted
    ]
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name, partitions=partitions)], timeout_ms=10_000
    )


def deleted_records(prefix: str, version: int) -> Talk:
    name = f"{prefix}a"
    yield create(topic(name, 2, retention_ms="-1"))
    yield produce(name, 1000, 2000, 3000)
    for offset in (0, 2, 1, 4, -2, -7, 3):
        yield _delete(name, (0, offset))
        yield list_offsets(9, name, -2)
        yield list_offsets(9, name, -1)
    yield produce(name, 4000)
    yield _delete(name, (0, -1), (1, -1), (2, 0))
    yield _delete(name, (1, 1))
    yield _delete(f"{prefix}none", (0, 0), (1, -1))
    yield DeleteRecordsRequest(topics=[], timeout_ms=0)
    yield list_offsets(9, name, -2)


def records_of_compacted_topics_stay(prefix: str, version: int) -> Talk:
    names = [f"{prefix}compact", f"{prefix}both"]
    yield create(
        topic(names[0], cleanup_policy="compact"),
        topic(names[1], cleanup_policy="compact,delete", retention_ms="-1"),
    )
    for name in names:
        yield produce(name, 1000)
        yield _delete(name, (0, 1))


# --- offset for leader epoch ----------------------------------------------------------------------


def epochs(version: int, name: str, *asked: tuple[int, int, int]) -> Any:
    """(partition, current leader epoch, epoch asked for)."""
    partitions = [
        OffsetForLeaderPartition(partition=p, current_leader_epoch=current, leader_epoch=epoch)
        for p, current, epoch in asked
    ]
    return carried(
        OffsetForLeaderEpochRequest,
        version,
        replica_id=-1,
        topics=[OffsetForLeaderTopic(topic=name, partitions=partitions)],
    )


def ends_of_epochs(prefix: str, version: int) -> Talk:
    name = f"{prefix}a"
    yield create(topic(name, retention_ms="-1"))
    for epoch in (-1, 0, 1, 5):
        yield epochs(version, name, (0, -1, epoch))
    yield produce(name, 1000, 2000)
    for epoch in (-2, -1, 0, 1):
        yield epochs(version, name, (0, -1, epoch))
    for current in (0, 1, 9):
        yield epochs(version, name, (0, current, 0))
    yield epochs(version, name, (3, -1, 0), (-1, -1, 0))
    yield epochs(version, f"{prefix}none", (0, -1, 0), (0, 4, 0))
    yield carried(OffsetForLeaderEpochRequest, version, replica_id=-1, topics=[])


EXCHANGES = [
    *(
        Exchange(ListOffsetsRequest, build)
        for build in (
            offsets_by_time,
            offsets_of_what_is_not_there,
            offsets_asked_for_twice,
            offsets_in_another_epoch,
            offsets_while_a_transaction_is_open,
            several_old_style_offsets,
        )
    ),
    *(
        Exchange(DeleteRecordsRequest, build)
        for build in (deleted_records, records_of_compacted_topics_stay)
    ),
    Exchange(OffsetForLeaderEpochRequest, ends_of_epochs),
]
