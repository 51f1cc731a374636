"""What must hold: nothing acknowledged is lost, and all is healthy again after the faults."""

import asyncio
from collections import defaultdict

from broker.model import TopicPartition
from broker.net.client import Client
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.list_transactions import ListTransactionsRequest
from broker.protocol.messages.metadata import MetadataResponsePartition
from tests.simulation.clients import (
    RETRIABLE,
    GroupConsumer,
    IdempotentProducer,
    SimulatedClient,
    TransactionalProducer,
    Violation,
    committed_offsets,
    fetch,
)
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.topic_churn import TOPIC as RECREATED

INTERNAL = ("__consumer_offsets", "__transaction_state")
LATE_S = 0.5
"""How much longer than it asked for a request may wait: a tick of the timers, or a stall."""


class Unhealthy(Exception):
    """Not recovered; the text says what is missing."""


async def check_health(
    cluster: SimulatedCluster, client: Client, groups: list[str], *, is_quiet: bool
) -> None:
    """Unhealthy unless every broker is registered, every ISR complete, every group at rest.

    When clients have finished (`is_quiet`), also unless HW = LEO on all replicas and no
    transaction is open.
    """
    response = await client.refresh_metadata(None)
    problems = []
    if len(response.brokers) < len(cluster.brokers):
        problems.append(f"{len(response.brokers)} brokers are registered")
    for topic in response.topics:
        if topic.name == RECREATED and not is_quiet:
            continue
        for partition in topic.partitions:
            name = TopicPartition(topic.name or "", partition.partition_index)
            problems += _partition_problems(cluster, name, partition, is_quiet)
    problems += _missed_wakeups(cluster)
    problems += _late_requests(cluster)
    if is_quiet:
        problems += await _open_transactions(client)
    for group_id in groups:
        request = DescribeGroupsRequest(groups=[group_id])
        (group,) = (await client.send_to_coordinator(group_id, request)).groups
        if group.group_state not in ("Stable", "Empty", "Dead"):
            problems.append(f"group {group_id} is {group.group_state}")
    if problems:
        raise Unhealthy("; ".join(problems))


def _missed_wakeups(cluster: SimulatedCluster) -> list[str]:
    """Brokers whose timer had to do what an event should have done: a bug, though it was healed."""
    managers = {
        broker_id: getattr(broker.server, "_replicas", None)  # missing while the broker starts
        for broker_id, broker in cluster.brokers.items()
    }
    return [
        f"broker {broker_id} has missed {replicas.num_missed_wakeups} wake-ups"
        for broker_id, replicas in managers.items()
        if replicas is not None and replicas.num_missed_wakeups
    ]


def _late_requests(cluster: SimulatedCluster) -> list[str]:
    """Brokers with requests that wait although their time is up."""
    problems = []
    for broker_id, broker in cluster.brokers.items():
        replicas = getattr(broker.server, "_replicas", None)  # missing while the broker starts
        if replicas is None or broker.process is None or broker.process.is_paused:
            continue
        due_s = cluster.loop.time() - LATE_S
        waiting = replicas.purgatory._by_deadline.items()
        late = sum(len(operations) for deadline_s, operations in waiting if deadline_s < due_s)
        if late:
            problems.append(f"broker {broker_id} has {late} requests that wait past their timeout")
    return problems


async def _open_transactions(client: Client) -> list[str]:
    problems = []
    await client.refresh_metadata()
    asked = (
        client.send_to(node, ListTransactionsRequest()) for node in sorted(client.cluster.nodes)
    )
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, BaseException):
            problems.append(f"ListTransactions: {answer!r}")
            continue
        problems += [
            f"{state.transactional_id} is {state.transaction_state}"
            for state in answer.transaction_states
            if state.transaction_state not in ("Empty", "CompleteCommit", "CompleteAbort")
        ]
    return problems


def _partition_problems(
    cluster: SimulatedCluster,
    name: TopicPartition,
    partition: MetadataResponsePartition,
    is_quiet: bool,
) -> list[str]:
    if partition.leader_id < 0:
        return [f"{name} has no leader"]
    problems = []
    if set(partition.isr_nodes) != set(partition.replica_nodes):
        problems.append(f"{name}: ISR {partition.isr_nodes} of {partition.replica_nodes}")
    ends = {}
    for broker_id in partition.replica_nodes:
        server = cluster.brokers[broker_id].server
        replicas = getattr(server, "_replicas", None)  # missing while the broker starts
        replica = replicas and replicas.partitions.get(name)
        if replica is None:
            problems.append(f"{name}: broker {broker_id} has no replica")
        else:
            ends[broker_id] = (replica.log.high_watermark, replica.log.log_end_offset)
    if is_quiet and len({offset for pair in ends.values() for offset in pair}) > 1:
        problems.append(f"{name}: (HW, LEO) by broker {ends}")
    return problems


async def read_all(
    client: Client, partition: TopicPartition, isolation_level: int
) -> list[tuple[int, bytes]]:
    """Everything in a partition, as a consumer reads it."""
    rows: list[tuple[int, bytes]] = []
    position = 0
    while True:
        try:
            more = await fetch(client, partition, position, isolation_level)
        except RETRIABLE as error:
            raise Unhealthy(f"{partition} cannot be read at {position}: {error!r}") from error
        if not more:
            return [row for row in rows if row[1]]
        rows += more
        position = more[-1][0] + 1


async def check_records(client: Client, producers: list[SimulatedClient]) -> None:
    """Violation unless every acknowledged record is there once, in order; transactions whole."""
    idempotent = [each for each in producers if isinstance(each, IdempotentProducer)]
    transactional = [each for each in producers if isinstance(each, TransactionalProducer)]
    partitions = {batch.partition for producer in idempotent for batch in producer.sent}
    logs = {name: await read_all(client, name, 0) for name in sorted(partitions)}
    for producer in idempotent:
        _check_idempotent(producer, logs)
    written = {
        name
        for producer in transactional
        for transaction in producer.transactions
        for name in transaction.values
    }
    committed = {name: await read_all(client, name, 1) for name in sorted(written)}
    for each in transactional:
        _check_transactions(each, committed)


def _check_idempotent(
    producer: IdempotentProducer, logs: dict[TopicPartition, list[tuple[int, bytes]]]
) -> None:
    for batch in producer.sent:
        if batch.offset is not None:
            stored = dict(logs[batch.partition])
            for number, value in enumerate(batch.values):
                found = stored.get(batch.offset + number)
                if batch.offset >= 0 and found != value:
                    raise Violation(
                        f"lost: {batch.partition} offset {batch.offset + number}: "
                        f"acknowledged {value!r}, found {found!r}"
                    )
    for partition, rows in logs.items():
        prefix = f"{producer.name}/{partition.partition}/".encode()
        numbers = [int(value.rpartition(b"/")[2]) for _, value in rows if value.startswith(prefix)]
        if numbers != list(range(len(numbers))):
            raise Violation(f"{partition}: {producer.name} is out of order or repeated: {numbers}")
        acknowledged = sum(
            len(batch.values)
            for batch in producer.sent
            if batch.partition == partition and batch.offset is not None
        )
        if len(numbers) < acknowledged:
            raise Violation(f"{partition}: {acknowledged} acknowledged, {len(numbers)} found")


def _check_transactions(
    producer: TransactionalProducer, logs: dict[TopicPartition, list[tuple[int, bytes]]]
) -> None:
    counts: dict[bytes, int] = defaultdict(int)
    for rows in logs.values():
        for _, value in rows:
            counts[value] += 1
    for transaction in producer.transactions:
        found = [counts[value] for value in transaction.values.values()]
        where = f"{producer.name}: transaction {transaction.number}"
        if any(count > 1 for count in found):
            raise Violation(f"{where}: a record is there twice")
        if transaction.outcome is True and not all(found):
            raise Violation(f"{where} was committed, found {found}")
        if transaction.outcome is False and any(found):
            raise Violation(f"{where} was aborted, found {found}")
        if len(set(found)) > 1:
            raise Violation(f"{where} is torn: {found}")


async def check_commits(client: Client, group_id: str, consumers: list[GroupConsumer]) -> None:
    """Violation if acknowledged commits moved back, or the last one is not there."""
    latest: dict[TopicPartition, int] = {}
    for partition, offset in consumers[0].commits:
        if offset < latest.get(partition, 0):
            raise Violation(
                f"group {group_id}: {partition} moved back from {latest[partition]} to {offset}"
            )
        latest[partition] = offset
    if not latest:
        return
    found = await committed_offsets(client, group_id, sorted(latest))
    if found is None:
        raise Unhealthy(f"offsets of group {group_id} cannot be read")
    for partition, offset in latest.items():
        if found[partition] < offset:
            raise Violation(f"group {group_id}: {partition} committed {offset}, is {found}")


def check_progress(clients: list[SimulatedClient], before: dict[str, int]) -> None:
    """Unhealthy unless every client has completed something since `before`."""
    stuck = [each.name for each in clients if each.completed == before[each.name]]
    if stuck:
        raise Unhealthy(f"no progress after the faults ended: {', '.join(stuck)}")


def raise_failures(clients: list[SimulatedClient]) -> None:
    """Raise what a client failed with."""
    for each in clients:
        if each.failure is not None:
            raise each.failure
