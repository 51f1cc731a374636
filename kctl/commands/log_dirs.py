"""`kctl log-dirs`: what lies in the log directories of the brokers, and how large it is."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_dirs import LogDir, Replica, describe_log_dirs
from kctl.admin.topics import Topic, find_topics, live_brokers
from kctl.commands.topic_show import require_all_found
from kctl.errors import CliError, ExitStatus
from kctl.groups import command, lone_command
from kctl.kafka_text.records import log_dir_lines
from kctl.options import KafkaText, session_of
from kctl.tables import Column
from kctl.words.topics import KAFKA_PANEL, Selection

app = lone_command()


class GroupBy(StrEnum):
    """What a row is about."""

    REPLICA = "replica"
    TOPIC = "topic"
    DIR = "dir"
    BROKER = "broker"


BYTES = [Column("size_bytes", "BYTES", right=True), Column("replicas", right=True)]
COLUMNS = {
    GroupBy.REPLICA: [
        Column("broker", right=True),
        Column("log_dir"),
        Column("topic"),
        Column("partition", right=True),
        Column("size_bytes", "BYTES", right=True),
        Column("offset_lag", right=True),
        Column("future", wide=True),
    ],
    GroupBy.TOPIC: [Column("topic"), *BYTES],
    GroupBy.DIR: [
        Column("broker", right=True),
        Column("log_dir"),
        *BYTES,
        Column("usable_bytes", right=True),
        Column("total_bytes", right=True),
        Column("error"),
    ],
    GroupBy.BROKER: [Column("broker", right=True), *BYTES],
}


@command(
    app,
    "log-dirs",
    examples=[
        "kctl log-dirs orders",
        "kctl log-dirs --by topic",
        "kctl log-dirs --by dir -o json",
        "kctl log-dirs --broker-list 1 --topic-list orders --format kafka",
    ],
)
def log_dirs(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC…", help="Only these topics.", show_default=False),
    ] = None,
    brokers: Annotated[
        str | None,
        typer.Option("--brokers", "--broker-list", metavar="1,2", help="Only these brokers."),
    ] = None,
    group_by: Annotated[
        GroupBy,
        typer.Option("--by", metavar="WHAT", help="A row per replica, topic, dir or broker."),
    ] = GroupBy.REPLICA,
    text_format: KafkaText = None,
    topic_list: Annotated[
        str | None,
        typer.Option(
            "--topic-list",
            metavar="a,b",
            help="The same as TOPIC….",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
    describe: Annotated[
        bool, typer.Option("--describe", hidden=True, help="What it does anyway.")
    ] = False,
) -> None:
    """Show replicas in the log directories of brokers, with their sizes; the largest first."""
    session = session_of(ctx)
    wanted = [*(names or ()), *filter(None, (topic_list or "").split(","))]
    broker_ids = _broker_ids(brokers)

    async def question(client: Client) -> list[LogDir]:
        topics = await _topics(client, wanted) if wanted and not text_format else None
        if broker_ids is not None:
            _require_brokers(broker_ids, await live_brokers(client))
        return await describe_log_dirs(client, broker_ids, topics)

    found = ask(session, question)
    if text_format:
        session.out.lines(log_dir_lines(found, set(wanted)))
    else:
        name = "log_dir" if group_by is GroupBy.DIR else group_by.value
        rows = _rows(found, group_by)
        session.out.rows(
            rows, COLUMNS[group_by], name="topic" if group_by is GroupBy.REPLICA else name
        )


async def _topics(client: Client, names: Sequence[str]) -> list[Topic]:
    topics = await find_topics(client, names)
    require_all_found(Selection(tuple(names)), topics)
    return topics


def _broker_ids(text: str | None) -> frozenset[int] | None:
    try:
        return frozenset(int(part) for part in text.split(",") if part) if text else None
    except ValueError:
        raise CliError(
            f"--brokers {text}: expected ids of brokers", "e.g. --brokers 1,2", ExitStatus.USAGE
        ) from None


def _require_brokers(wanted: frozenset[int], present: frozenset[int]) -> None:
    if missing := wanted - present:
        raise CliError(
            f"no such broker: {', '.join(map(str, sorted(missing)))}",
            f"there are {', '.join(map(str, sorted(present)))}",
        )


def _rows(log_dirs: Sequence[LogDir], group_by: GroupBy) -> list[dict[str, object]]:
    placed = [(log_dir, replica) for log_dir in log_dirs for replica in log_dir.replicas]
    if group_by is GroupBy.REPLICA:
        rows = [_replica_row(log_dir, replica) for log_dir, replica in placed]
    elif group_by is GroupBy.TOPIC:
        by_topic: dict[str, list[Replica]] = defaultdict(list)
        for _, replica in placed:
            by_topic[replica.partition.topic].append(replica)
        rows = [{"topic": name, **_sum(replicas)} for name, replicas in by_topic.items()]
    elif group_by is GroupBy.BROKER:
        by_broker: dict[int, list[Replica]] = {log_dir.broker_id: [] for log_dir in log_dirs}
        for log_dir, replica in placed:
            by_broker[log_dir.broker_id].append(replica)
        rows = [{"broker": broker, **_sum(replicas)} for broker, replicas in by_broker.items()]
    else:
        rows = [_dir_row(log_dir) for log_dir in log_dirs]
    return sorted(rows, key=_largest_first)


def _largest_first(row: dict[str, object]) -> tuple[int, list[str]]:
    """Equal sizes in the order of what they belong to."""
    names = [str(row.get(key, "")).rjust(10) for key in ("broker", "topic", "partition")]
    return -int(str(row["size_bytes"])), names


def _replica_row(log_dir: LogDir, replica: Replica) -> dict[str, object]:
    return {
        "broker": log_dir.broker_id,
        "log_dir": log_dir.path,
        "topic": replica.partition.topic,
        "partition": replica.partition.partition,
        "size_bytes": replica.size_bytes,
        "offset_lag": replica.offset_lag,
        "future": replica.is_future,
    }


def _dir_row(log_dir: LogDir) -> dict[str, object]:
    return {
        "broker": log_dir.broker_id,
        "log_dir": log_dir.path,
        **_sum(log_dir.replicas),
        "usable_bytes": log_dir.usable_bytes,
        "total_bytes": log_dir.total_bytes,
        "error": log_dir.error.name if log_dir.error else None,
    }


def _sum(replicas: Iterable[Replica]) -> dict[str, object]:
    sizes = [replica.size_bytes for replica in replicas]
    return {"size_bytes": sum(sizes), "replicas": len(sizes)}
