"""The directory for files that kctl keeps between runs."""

import os
from pathlib import Path


def state_home() -> Path:
    """`$XDG_STATE_HOME/kctl`, by default `~/.local/state/kctl`; absolute."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return (Path(base) / "kctl").resolve()
