"""Moves of replicas between the log directories of a broker."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from broker.errors import ApiError, ErrorCode
from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kctl.admin.broker_queries import change
from kctl.model.assignments import ReplicaPlace

RETRY_S = 0.1


async def move_replicas(
    client: Client, wanted: Mapping[ReplicaPlace, str], *, timeout_s: float
) -> dict[ReplicaPlace, str]:
    """Start moves of replicas to directories; returns those that started in time.

    A replica that a reassignment is about to add does not exist yet, so the request is repeated
    until it does. ApiError if a broker refuses.
    """
    pending = dict(wanted)
    deadline = asyncio.get_running_loop().time() + timeout_s
    while pending:
        for place in await _begun(client, pending):
            del pending[place]
        if not pending or asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(RETRY_S)
    return {place: log_dir for place, log_dir in wanted.items() if place not in pending}


async def _begun(client: Client, wanted: Mapping[ReplicaPlace, str]) -> list[ReplicaPlace]:
    begun = []
    for broker in sorted({broker for _, broker in wanted}):
        mine = {partition: d for (partition, other), d in wanted.items() if other == broker}
        answer = await _sent(client, broker, _request(mine))
        for topic in answer.results:
            for one in topic.partitions:
                place = (TopicPartition(topic.topic_name, one.partition_index), broker)
                if one.error_code == ErrorCode.NONE:
                    begun.append(place)
                elif one.error_code != ErrorCode.REPLICA_NOT_AVAILABLE:
                    raise ApiError(
                        ErrorCode(one.error_code),
                        f"Failed to alter dir for {place[0]}-{broker}",
                    )
    return begun


async def _sent(
    client: Client, broker: int, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    if broker not in client.cluster.nodes:
        await client.refresh_metadata()
    return await change(client, broker, lambda: client.send_to(broker, request))


def _request(wanted: Mapping[TopicPartition, str]) -> AlterReplicaLogDirsRequest:
    dirs: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (topic, partition), log_dir in sorted(wanted.items()):
        dirs[log_dir][topic].append(partition)
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=name, partitions=some)
                    for name, some in topics.items()
                ],
            )
            for path, topics in dirs.items()
        ]
    )
