"""Rows and columns of `kctl dev status`."""

from pathlib import Path

from kctl.cli.tables import Column, by_word

COLUMNS = [
    Column("id", right=True),
    Column("status", priority=1, style=by_word("status")),
    Column("address", priority=0),
    Column("admin", priority=3),
    Column("pid", right=True),
    Column("software", wide=True),
    Column("data", wide=True),
    Column("log", wide=True),
]


def server_row(
    server_id: int | str,
    pid: int | None,
    address: str | None,
    data: Path,
    log_file: Path,
    admin: str | None = None,
    *,
    software: str,
) -> dict[str, object]:
    """A development broker or ZooKeeper as a row of COLUMNS; `pid` is None if it is stopped."""
    return {
        "id": server_id,
        "status": "stopped" if pid is None else "running",
        "address": address,
        "admin": admin,
        "pid": pid,
        "software": software,
        "data": str(data),
        "log": str(log_file),
    }
