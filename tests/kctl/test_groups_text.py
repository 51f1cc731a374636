"""`kctl groups --format kafka` equals the recorded output of Kafka's tool (tests/golden/tools)."""

from pathlib import Path

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition
from kctl.model.cluster import Broker
from kctl.model.groups import Group, GroupListing, Member
from kctl.model.lag import GroupLag, LogBounds
from kctl.plans.lag import partition_lags
from kctl.plans.offset_resets import format_csv, plan_reset
from kctl.views.kafka_text.groups import (
    Text,
    delete_offsets_text,
    delete_text,
    list_text,
    members_text,
    offsets_text,
    reset_csv_order,
    reset_text,
    state_text,
)

TOOLS = Path(__file__).parents[1] / "golden" / "tools"
COORDINATOR = Broker(2, "127.0.0.1", 29202, None)
EMPTY = Group("g-perf", "Empty", "", (), COORDINATOR)
PLACES = [TopicPartition("orders", partition) for partition in range(6)]
ENDS = dict(zip(PLACES, [1404, 624, 1092, 624, 780, 476], strict=True))
BOUNDS = LogBounds(dict.fromkeys(PLACES, 0), ENDS)


def golden(name: str) -> str:
    """What the tool printed; some of its texts do not end with a line feed."""
    (path,) = TOOLS.glob(f"{name}-*.txt")
    return path.read_text().split("\n", 1)[1].rpartition("exit 0")[0]


def both(text: Text) -> str:
    return text.note + text.text


def test_list_with_states() -> None:
    listing = GroupListing("g-perf", "consumer", "Empty", "Classic")
    assert list_text([listing], states=True, types=False) == golden("20")
    assert list_text([listing], states=False, types=False) == "g-perf\n"


def test_offsets_of_a_group() -> None:
    found = GroupLag(EMPTY, tuple(partition_lags(EMPTY, ENDS, BOUNDS)))
    assert both(offsets_text(found)) == golden("21")


def test_state_and_members_of_a_group() -> None:
    assert both(state_text(EMPTY)) == golden("22")
    assert both(members_text(EMPTY, verbose=True)) == golden("23")


def test_group_that_does_not_exist() -> None:
    missing = Group("nope", "Dead", "", (), COORDINATOR)
    assert both(offsets_text(GroupLag(missing, ()))) == golden("24")
    assert state_text(missing).text == golden("24")


def test_rebalancing_group_has_a_warning() -> None:
    group = Group("g", "PreparingRebalance", "range", (), COORDINATOR)
    assert "Warning: Consumer group 'g' is rebalancing." in state_text(group).note


def test_member_with_an_instance_id_brings_a_column() -> None:
    member = Member("m-1", "static-1", "client", "/127.0.0.1", (PLACES[0], PLACES[2]))
    group = Group("g", "Stable", "range", (member,), COORDINATOR)
    _, head, row, _ = members_text(group, verbose=True).text.split("\n")
    assert head.split() == [
        "GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS",
        "ASSIGNMENT",
    ]  # fmt: skip
    assert row.split() == ["g", "m-1", "static-1", "/127.0.0.1", "client", "2", "(0,2)"]


def test_resets() -> None:
    earliest = plan_reset("g-perf", dict.fromkeys(PLACES, 0), {}, BOUNDS)
    assert reset_text([earliest]) == golden("25")
    some = {PLACES[0]: 1394, PLACES[1]: 614}
    assert reset_text([plan_reset("g-perf", some, {}, BOUNDS)]) == golden("26")
    current = plan_reset("g-perf", ENDS | some, {}, BOUNDS)
    assert format_csv([reset_csv_order(current)]) + "\n" == golden("27")


def test_deletions() -> None:
    done = dict.fromkeys(PLACES, ErrorCode.NONE)
    assert delete_offsets_text("g-perf", ["orders"], ErrorCode.NONE, done) == golden("28")
    assert delete_text({"g-perf": ErrorCode.GROUP_ID_NOT_FOUND}, []) == golden("29")
    assert delete_text({}, ["a"]) == "Deletion of requested consumer groups ('a') was successful.\n"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, "'g' does not exist."),
        (ErrorCode.NON_EMPTY_GROUP, "is forbidden if the group is not empty."),
        (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "Encounter some partition level error"),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, "unknown error: COORDINATOR_NOT_AVAILABLE"),
    ],
)
def test_deletion_of_offsets_that_failed(error: ErrorCode, words: str) -> None:
    text = delete_offsets_text("g", ["orders"], error, {PLACES[0]: error})
    assert text.startswith("\nError: ")
    assert words in text
