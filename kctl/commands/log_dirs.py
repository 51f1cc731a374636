"""`kctl log-dirs`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.errors import ErrorCode
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.log_dirs import describe_log_dirs
from kctl.admin.topic_selection import require_all_found
from kctl.admin.topics import find_topics, live_brokers
from kctl.cli.arguments.topics import KAFKA_PANEL, Selection
from kctl.cli.command_tree import command, lone_command
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.missing import no_such_broker
from kctl.cli.options import KafkaText, session_of
from kctl.cli.output import OutputFormat
from kctl.cli.tables import partition_name
from kctl.model.log_dirs import LogDir
from kctl.model.strays import Stray, stray_replicas
from kctl.model.topics import Topic
from kctl.views.kafka_text.records import log_dir_lines
from kctl.views.log_dirs import COLUMNS, GroupBy, log_dir_rows, log_dir_tree
from kctl.views.quantities import plural

app = lone_command()


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
        typer.Option("--by", metavar="WHAT", help="One row per replica, topic, dir or broker."),
    ] = GroupBy.REPLICA,
    text_format: KafkaText = None,
    topic_list: Annotated[
        str | None,
        typer.Option(
            "--topic-list",
            metavar="a,b",
            help="Same as TOPIC….",
            rich_help_panel=KAFKA_PANEL,
        ),
    ] = None,
    describe: Annotated[
        bool,
        typer.Option("--describe", hidden=True, help="Accepted for compatibility; has no effect."),
    ] = False,
) -> None:
    """Show the replicas in the brokers' log directories and their sizes."""
    session = session_of(ctx)
    wanted = [*(names or ()), *filter(None, (topic_list or "").split(","))]
    broker_ids = _broker_ids(brokers)

    async def question(client: Client) -> tuple[list[LogDir], frozenset[Stray]]:
        topics = await _topics(client, wanted) if wanted and not text_format else None
        if broker_ids is not None:
            _require_brokers(broker_ids, await live_brokers(client))
        found = await describe_log_dirs(client, broker_ids, topics)
        return found, await _strays(client, found)

    found, strays = ask(session, question, partial=True)
    if text_format:
        session.out.lines(log_dir_lines(found, set(wanted)))
    elif session.output is OutputFormat.TREE:
        for broker in log_dir_tree(found):
            session.out.tree(broker)
    else:
        name = "log_dir" if group_by is GroupBy.DIR else group_by.value
        rows = log_dir_rows(found, group_by, strays)
        session.out.rows(
            rows, COLUMNS[group_by], name=partition_name if group_by is GroupBy.REPLICA else name
        )
        if strays:
            session.out.note(
                f"{plural(len(strays), 'stray replica')}: the topic does not exist, or the broker"
                " is not in the replica list"
            )


async def _strays(client: Client, log_dirs: Sequence[LogDir]) -> frozenset[Stray]:
    """The stray replicas, without those of topics that this user may not describe."""
    # Looked up after the directories: a topic created in between is no stray.
    strays = stray_replicas(log_dirs, await find_topics(client))
    names = sorted({partition.topic for _, partition in strays})
    answered = (await client.metadata(names)).topics if names else []
    hidden = {t.name for t in answered if t.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    return frozenset(stray for stray in strays if stray[1].topic not in hidden)


async def _topics(client: Client, names: Sequence[str]) -> list[Topic]:
    """The named topics; CliError, with similar names, if one does not exist."""
    topics = await find_topics(client)
    require_all_found(Selection(tuple(names)), topics)
    return [topic for topic in topics if topic.name in names]


def _broker_ids(text: str | None) -> frozenset[int] | None:
    try:
        return frozenset(int(part) for part in text.split(",") if part) if text else None
    except ValueError:
        raise CliError(
            f"--brokers {text}: expected broker ids", "e.g. --brokers 1,2", ExitStatus.USAGE
        ) from None


def _require_brokers(wanted: frozenset[int], present: frozenset[int]) -> None:
    if missing := wanted - present:
        raise no_such_broker(missing, present)
