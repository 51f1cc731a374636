"""`kctl api-versions`: which requests the brokers understand."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import typer

from broker.net.client import Client
from kctl.admin.api_versions import ApiRange, api_versions_of
from kctl.admin.cluster import Broker, describe_cluster
from kctl.admin.connection import ask
from kctl.groups import command, lone_command
from kctl.kafka_text.api_versions import broker_api_versions
from kctl.options import KafkaText, session_of
from kctl.tables import Column

app = lone_command()

COLUMNS = [
    Column("api"),
    Column("api_key", "KEY", right=True),
    Column("min_version", "MIN", right=True),
    Column("max_version", "MAX", right=True),
    Column("used_version", "USED", right=True),
    Column("brokers"),
]

Answers = list[tuple[Broker, list[ApiRange]]]


@command(
    app,
    "api-versions",
    examples=[
        "kctl api-versions -b localhost:9092",
        "kctl api-versions -b localhost:9092 --format kafka",
    ],
)
def api_versions(ctx: typer.Context, text_format: KafkaText = None) -> None:
    """Show which requests each broker understands.

    One row per request and range of versions, with the brokers that serve it: two rows for the
    same request mean that the brokers differ. USED is the version kctl speaks.
    """
    session = session_of(ctx)
    answers = ask(session, _ask_every_broker)
    if text_format:
        blocks = (broker_api_versions(broker, ranges) for broker, ranges in answers)
        session.out.lines(line for block in blocks for line in block)
    else:
        session.out.rows(version_rows(answers), COLUMNS, name="api")


async def _ask_every_broker(client: Client) -> Answers:
    brokers = (await describe_cluster(client)).brokers
    return list(zip(brokers, await api_versions_of(client, brokers), strict=True))


def version_rows(answers: Iterable[tuple[Broker, Sequence[ApiRange]]]) -> list[dict[str, object]]:
    """Equal ranges of several brokers in one row, ordered by API key."""
    brokers_by_range: dict[ApiRange, list[int]] = defaultdict(list)
    for broker, ranges in answers:
        for api in ranges:
            brokers_by_range[api].append(broker.id)
    ordered = sorted(brokers_by_range.items(), key=lambda item: (item[0].key, item[1]))
    return [_row(api, broker_ids) for api, broker_ids in ordered]


def _row(api: ApiRange, broker_ids: list[int]) -> dict[str, object]:
    return {
        "api": api.name or f"unknown-{api.key}",
        "api_key": api.key,
        "min_version": api.min_version,
        "max_version": api.max_version,
        "used_version": api.used_version,
        "brokers": broker_ids,
    }
