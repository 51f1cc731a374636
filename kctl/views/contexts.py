"""Rows and columns of `kctl context`."""

from dataclasses import asdict, replace

from kctl.cli.contexts import Contexts
from kctl.cli.tables import Column
from kctl.cli.theme import Style
from kctl.views.styles import always, if_any

COLUMNS = [
    Column("current", priority=3, style=always(Style.GOOD)),
    Column("name", priority=0, style=lambda row: Style.GOOD if row.get("current") else None),
    Column("bootstrap_servers", priority=1),
    Column("read_only", style=if_any("read_only", Style.WARN)),
    Column("protected", style=if_any("protected", Style.WARN)),
    Column("command_config", wide=True),
    Column("zookeeper", wide=True),
    Column("cluster_id", wide=True),
    Column("export_engine", wide=True),
]
RECORD_COLUMNS = [replace(column, wide=False) for column in COLUMNS]


def context_row(name: str, contexts: Contexts) -> dict[str, object]:
    """A context as a row of COLUMNS; CliError if no context has this name."""
    context = asdict(contexts.get(name))
    return {"current": "*" if name == contexts.current else None, "name": name, **context}
