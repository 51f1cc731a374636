"""Rows and columns of `kctl context`."""

from dataclasses import asdict

from kctl.cli.contexts import Contexts
from kctl.cli.tables import Column

COLUMNS = [
    Column("current"),
    Column("name"),
    Column("bootstrap_servers"),
    Column("read_only"),
    Column("protected"),
    Column("command_config", wide=True),
    Column("zookeeper", wide=True),
    Column("cluster_id", wide=True),
    Column("export_engine", wide=True),
]


def context_row(name: str, contexts: Contexts) -> dict[str, object]:
    """A context as a row of COLUMNS; CliError if no context has this name."""
    context = asdict(contexts.get(name))
    return {"current": "*" if name == contexts.current else None, "name": name, **context}
