"""Reads every replica of partitions, not only the leaders, and compares them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from broker.errors import ErrorCode
from broker.model import TopicPartition, Uuid
from broker.net.client import Client
from broker.protocol.messages.fetch import PartitionData
from kctl.admin.broker_queries import each_broker
from kctl.admin.replica_fetch import FetchSizes, fetch_from_replica
from kctl.model.replica_checks import Fetched
from kctl.plans.replica_comparison import ReplicaCheck


async def compare_once(
    client: Client,
    checks: Sequence[ReplicaCheck],
    ids: Mapping[str, Uuid],
    sizes: FetchSizes,
) -> bool:
    """Fetch from all replicas and compare; returns whether any check advanced.

    A broker that does not answer is left out of the comparison, and is not queried again.
    """
    wanted: dict[int, list[ReplicaCheck]] = defaultdict(list)
    for check in checks:
        for broker in check.answering:
            wanted[broker].append(check)
    answers = await each_broker(
        client, wanted, lambda broker, some: _fetch(client, broker, some, ids, sizes)
    )
    progress = [
        check.compare(
            {
                broker: answer[check.partition]
                for broker, answer in answers.items()
                if check.partition in answer
            }
        )
        for check in checks
    ]
    return any(progress)


async def _fetch(
    client: Client,
    broker: int,
    checks: Sequence[ReplicaCheck],
    ids: Mapping[str, Uuid],
    sizes: FetchSizes,
) -> dict[TopicPartition, Fetched]:
    offsets = {check.partition: check.offset for check in checks}
    found = await fetch_from_replica(client, broker, offsets, ids, sizes)
    return {place: _fetched(one) for place, one in found.items()}


def _fetched(one: PartitionData) -> Fetched:
    records = one.records
    data = records if isinstance(records, bytes | bytearray | memoryview) else b""
    return Fetched(one.high_watermark, data, ErrorCode(one.error_code))
