"""`kctl api-versions`."""

import typer

from kctl.admin.api_versions import api_versions_of
from kctl.admin.connection import ask
from kctl.cli.command_tree import command, lone_command
from kctl.cli.options import KafkaText, session_of
from kctl.views.api_versions import COLUMNS, version_rows
from kctl.views.kafka_text.api_versions import broker_api_versions

app = lone_command()


@command(
    app,
    "api-versions",
    examples=[
        "kctl api-versions -b localhost:9092",
        "kctl api-versions -b localhost:9092 --format kafka",
    ],
)
def api_versions(ctx: typer.Context, text_format: KafkaText = None) -> None:
    """Show the API versions that each broker supports.

    One row per API and range of versions, with the brokers that support it: two rows for the same
    API mean that the brokers differ. USED is the version that kctl uses.
    """
    session = session_of(ctx)
    answers = ask(session, api_versions_of, partial=True)
    if text_format:
        blocks = (broker_api_versions(broker, ranges) for broker, ranges in answers)
        session.out.lines(line for block in blocks for line in block)
    else:
        session.out.rows(version_rows(answers), COLUMNS, name="api")
