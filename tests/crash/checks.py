"""What must hold after faults, compared with what was acknowledged to clients."""

from collections.abc import Sequence

import pytest

from tests.crash.workload import (
    PARTITIONS,
    Following,
    Sending,
    Transacting,
    committed_offsets,
    read_log,
)


def check_sent(sending: Sending, servers: str) -> list[list[bytes]]:
    """Check that every acknowledged record is at its offset; returns the values by partition."""
    assert sending.refused == []
    log = read_log(servers, sending.topic)
    for records in log:
        offsets = [offset for offset, _ in records]
        assert offsets == list(range(len(records)))
    found: dict[bytes, set[tuple[int, int | None]]] = {}
    for index, records in enumerate(log):
        for at, value in records:
            found.setdefault(value, {(index, None)}).add((index, at))
    broken = {
        value: place
        for value, place in sending.promised.items()
        if place not in found.get(value, ())
    }
    assert not broken, f"promised elsewhere than found: {sorted(broken.items())[:20]}"
    return [[value for _, value in records] for records in log]


def check_idempotent(sending: Sending, servers: str) -> None:
    values = check_sent(sending, servers)
    for index, seen in enumerate(values):
        _check_sequence(sending, index, seen)


def check_acks_one(sending: Sending, servers: str) -> None:
    """Check the order: records that were sent twice may be stored twice, but never reordered."""
    for index, seen in enumerate(check_sent(sending, servers)):
        _check_sequence(sending, index, list(dict.fromkeys(seen)))


def _check_sequence(sending: Sending, partition: int, seen: list[bytes]) -> None:
    """Check that the partition has every value that was sent to it, once and in order."""
    expected = [b"%d" % n for n in range(partition, sending.num_sent, PARTITIONS)]
    if seen == expected:
        return
    pairs = zip(seen, expected, strict=False)
    at = next(
        (index for index, (one, other) in enumerate(pairs) if one != other),
        min(len(seen), len(expected)),
    )
    again = len(seen) - len(set(seen))
    pytest.fail(
        f"{sending.topic}-{partition}: {len(seen)} values of {len(expected)}, {again} of them "
        f"again; from offset {at} on {seen[max(0, at - 3) : at + 8]} instead of "
        f"{expected[max(0, at - 3) : at + 8]}"
    )


def check_transactions(transacting: Transacting, servers: str) -> None:
    log = read_log(servers, transacting.topic, "read_committed")
    seen = [[int(value) for _, value in records] for records in log]
    assert seen[0] == seen[1] == seen[2], "a transaction is there in part"
    assert seen[0] == sorted(set(seen[0])), "a transaction is there twice, or out of order"
    assert transacting.committed <= set(seen[0]) <= transacting.committed | transacting.unknown
    assert transacting.committed
    assert transacting.aborted


def check_followed(members: Sequence[Following], servers: str) -> None:
    """Check the members of a group: their commits are stored, and they had read all before them."""
    first = members[0]
    committed = committed_offsets(servers, first.group_id, first.topic)
    log = read_log(servers, first.topic, first.isolation_level)
    read = set().union(*(member.read.keys() for member in members))
    for member in members:
        assert member.changed == []
        assert member.went_back == []
        for partition, offset in member.committed.items():
            assert committed[partition] >= offset
            assert {(partition, at) for at, _ in log[partition] if at < offset} <= read
    assert any(member.committed for member in members)
