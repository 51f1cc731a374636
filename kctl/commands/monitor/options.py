"""Options of several verbs of `kctl monitor`."""

import os
from pathlib import Path
from typing import Annotated

import typer

History = Annotated[
    Path | None,
    typer.Option("--history", metavar="FILE", help="SQLite file with the history of lag."),
]


def default_history() -> Path:
    """`kctl/lag.db` in the user's state directory."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "kctl" / "lag.db"
