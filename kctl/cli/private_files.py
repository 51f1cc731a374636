"""Files with secrets: readable by their owner only, from their first byte on."""

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replace a file by one with mode 0600; no other user can read it at any time."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
