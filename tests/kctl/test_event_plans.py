"""The changes between two snapshots, in the words of `kctl events`."""

from dataclasses import replace

import pytest

from kctl.model.cluster import Cluster
from kctl.model.events import Snapshot
from kctl.model.topics import Partition, Topic
from kctl.plans.events import changes

BEFORE = Partition(0, leader=1, leader_epoch=4, replicas=(1, 2, 3), isr=(1, 2, 3))


def snapshot(partition: Partition) -> Snapshot:
    return Snapshot(Cluster("id", 1, ()), [Topic("orders", None, False, (partition,))])


@pytest.mark.parametrize(
    ("after", "events"),
    [
        (BEFORE, []),
        (
            replace(BEFORE, leader=2, leader_epoch=5, isr=(2, 3)),
            [("leader", 1, 2, "epoch 5"), ("isr-shrunk", [1, 2, 3], [2, 3], "")],
        ),
        # A follower died: the leader stays, though its epoch is raised.
        (
            replace(BEFORE, leader_epoch=5, isr=(1, 2)),
            [("isr-shrunk", [1, 2, 3], [1, 2], "epoch 5")],
        ),
        (replace(BEFORE, isr=(1, 2)), [("isr-shrunk", [1, 2, 3], [1, 2], "")]),
        # Between two looks the leader was lost and elected again.
        (replace(BEFORE, leader_epoch=6), [("leader", 1, 1, "epoch 6")]),
        (replace(BEFORE, isr=(2, 3, 1)), []),
    ],
)
def test_leader_and_isr_changes(after: Partition, events: list[tuple[object, ...]]) -> None:
    found = changes(snapshot(BEFORE), snapshot(after))
    assert [(one.kind, one.before, one.after, one.detail) for one in found] == events
