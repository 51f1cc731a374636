"""Options and arguments that the verbs of `kctl configs` share."""

from typing import Annotated, Any

import typer

from kctl.cli.arguments.topics import KAFKA_PANEL

Entities = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ENTITY…",
        help="topic:NAME, broker:ID, broker-logger:ID, group:NAME, client-metrics:NAME, or "
        "brokers (cluster-wide defaults).",
        show_default=False,
    ),
]

OneEntity = Annotated[
    str,
    typer.Argument(
        metavar="ENTITY",
        help="topic:NAME, broker:ID, broker-logger:ID, group:NAME, client-metrics:NAME, or "
        "brokers (cluster-wide defaults).",
    ),
]

All = Annotated[bool, typer.Option("--all", help="Include configs with default values.")]


def _kafka(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(
        name, help=text, metavar=metavar, show_default=False, rich_help_panel=KAFKA_PANEL
    )


EntityTypeOption = Annotated[
    str | None,
    _kafka(
        "--entity-type",
        "Entity type: topics, brokers, broker-loggers, groups or client-metrics.",
        "TYPE",
    ),
]

EntityName = Annotated[
    str | None,
    _kafka("--entity-name", "Entity name; describe shows all entities without it.", "NAME"),
]

EntityDefault = Annotated[bool, _kafka("--entity-default", "The cluster-wide broker defaults.")]

TopicOption = Annotated[str | None, _kafka("--topic", "Same as topic:NAME.", "NAME")]

BrokerOption = Annotated[str | None, _kafka("--broker", "Same as broker:ID.", "ID")]

BrokerDefaults = Annotated[bool, _kafka("--broker-defaults", "Same as brokers.")]

GroupOption = Annotated[str | None, _kafka("--group", "Same as group:NAME.", "NAME")]

ClientMetrics = Annotated[
    str | None, _kafka("--client-metrics", "Same as client-metrics:NAME.", "NAME")
]

BrokerLogger = Annotated[str | None, _kafka("--broker-logger", "Same as broker-logger:ID.", "ID")]
