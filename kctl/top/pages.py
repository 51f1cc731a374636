"""The tables of `kctl top`: what each shows, what Enter opens, which command shows the same."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from broker.model import TopicPartition
from kctl.cli.tables import Columns, Row
from kctl.model.top import TopSample
from kctl.views.top import columns, group_rows, replica_rows

Rows = Sequence[Row]


class View(StrEnum):
    """The tables that a key opens; also the argument of the command."""

    BROKERS = "brokers"
    TOPICS = "topics"
    PARTITIONS = "partitions"
    GROUPS = "groups"
    REASSIGNMENTS = "reassignments"


@dataclass(frozen=True)
class Page:
    """One table."""

    view: View
    """The view that it belongs to."""
    title: str
    """Its name in the path: the view's, or that of what was opened."""
    columns: Columns
    rows: Callable[[TopSample], Rows]
    words: tuple[str, ...]
    """The kctl command that shows the same, without `kctl`."""
    identity: tuple[str, ...]
    """The fields that identify a row, so that the cursor follows it."""
    empty: str
    """What is shown if there are no rows."""
    open: "Callable[[Row], Page | None]" = lambda _row: None
    """What Enter opens."""
    consumers: "Callable[[Row], Page | None]" = lambda _row: None
    """The consumers of what is under the cursor."""
    sort: tuple[str, bool] | None = None
    """The initial order: a column and whether it is descending; None: as the rows come."""


def consumers_page(view: View, row: Row) -> Page:
    """The consumers of the row's topic."""
    topic = str(row["topic"])
    return Page(
        view,
        f"{topic} consumers",
        columns.CONSUMER_COLUMNS,
        partial(group_rows.consumer_rows, topic=topic),
        ("groups", "describe", "--all", "--by-topic"),
        ("group", "client_id"),
        f"no group has committed offsets of {topic} or is assigned to it",
        open=partial(group_page, view),
        sort=("lag", True),
    )


def group_page(view: View, row: Row) -> Page:
    """The partitions of a group."""
    group = str(row["group"])
    return Page(
        view,
        group,
        columns.GROUP_PARTITION_COLUMNS,
        partial(group_rows.group_partition_rows, group_id=group),
        ("groups", "watch", group),
        ("topic", "partition"),
        f"{group} has no committed offsets and no assigned partitions",
        open=partial(replicas_page, view),
        consumers=partial(consumers_page, view),
        sort=("lag", True),
    )


def topic_page(view: View, row: Row) -> Page:
    """The partitions of a topic."""
    topic = str(row["topic"])
    return Page(
        view,
        topic,
        [column for column in columns.PARTITION_COLUMNS if column.key != "topic"],
        partial(replica_rows.partition_rows, topic=topic),
        ("topics", "describe", topic, "-o", "wide"),
        ("topic", "partition"),
        f"there is no topic {topic}",
        open=partial(replicas_page, view),
        consumers=partial(consumers_page, view),
    )


def broker_page(view: View, row: Row) -> Page:
    """The partitions with a replica on a broker."""
    broker_id = int(str(row["broker"]))
    return Page(
        view,
        f"broker {broker_id}",
        columns.PARTITION_COLUMNS,
        partial(replica_rows.partition_rows, broker_id=broker_id),
        ("log-dirs", "--brokers", str(broker_id)),
        ("topic", "partition"),
        f"broker {broker_id} has no replicas",
        open=partial(replicas_page, view),
        consumers=partial(consumers_page, view),
        sort=("messages_in", True),
    )


def replicas_page(view: View, row: Row) -> Page:
    """The replicas of a partition."""
    place = TopicPartition(str(row["topic"]), int(str(row["partition"])))
    return Page(
        view,
        f"{place.topic}:{place.partition}",
        columns.REPLICA_COLUMNS,
        partial(replica_rows.replica_rows, place=place),
        ("log-dirs", place.topic),
        ("broker",),
        f"there is no partition {place}",
        open=partial(broker_page, view),
    )


PAGES: Mapping[View, Page] = {
    View.BROKERS: Page(
        View.BROKERS,
        "brokers",
        columns.BROKER_COLUMNS,
        replica_rows.broker_rows,
        ("log-dirs", "--by", "broker"),
        ("broker",),
        "there are no brokers",
        open=partial(broker_page, View.BROKERS),
    ),
    View.TOPICS: Page(
        View.TOPICS,
        "topics",
        columns.TOPIC_COLUMNS,
        replica_rows.topic_rows,
        ("topics", "list"),
        ("topic",),
        "there are no topics",
        open=partial(topic_page, View.TOPICS),
        consumers=partial(consumers_page, View.TOPICS),
        sort=("messages_in", True),
    ),
    View.PARTITIONS: Page(
        View.PARTITIONS,
        "partitions",
        columns.PARTITION_COLUMNS,
        replica_rows.partition_rows,
        ("topics", "describe", "-o", "wide"),
        ("topic", "partition"),
        "there are no partitions",
        open=partial(replicas_page, View.PARTITIONS),
        consumers=partial(consumers_page, View.PARTITIONS),
    ),
    View.GROUPS: Page(
        View.GROUPS,
        "groups",
        columns.GROUP_COLUMNS,
        group_rows.group_rows,
        ("groups", "list", "--lag"),
        ("group",),
        "there are no consumer groups",
        open=partial(group_page, View.GROUPS),
        sort=("lag", True),
    ),
    View.REASSIGNMENTS: Page(
        View.REASSIGNMENTS,
        "reassignments",
        columns.REASSIGNMENT_COLUMNS,
        replica_rows.reassignment_rows,
        ("reassign", "list"),
        ("topic", "partition"),
        "no reassignment is in progress",
        open=partial(replicas_page, View.REASSIGNMENTS),
        consumers=partial(consumers_page, View.REASSIGNMENTS),
    ),
}


def command_line(page: Page, cluster: Sequence[str]) -> str:
    """The command line that shows what the page shows; `cluster` are the options that name it."""
    return shlex.join(["kctl", *page.words, *cluster])
