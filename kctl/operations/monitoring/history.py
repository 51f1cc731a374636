"""The history of lag, in an SQLite file that several readers and one writer share."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from kctl.cli.errors import CliError
from kctl.model.monitoring import ClusterSnapshot, LagSample

_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS lag (
        time_s REAL NOT NULL,
        cluster TEXT NOT NULL,
        group_id TEXT NOT NULL,
        topic TEXT NOT NULL,
        lag INTEGER NOT NULL,
        lag_seconds REAL,
        produced INTEGER NOT NULL,
        committed INTEGER NOT NULL
    );
    CREATE INDEX IF NOT EXISTS lag_by_group ON lag (group_id, time_s);
    CREATE INDEX IF NOT EXISTS lag_by_time ON lag (time_s);
"""
_COLUMNS: Final = "time_s, cluster, group_id, topic, lag, lag_seconds, produced, committed"


def samples_of(snapshot: ClusterSnapshot) -> list[LagSample]:
    """One sample per group and topic."""
    samples = []
    for one in snapshot.groups:
        by_topic: dict[str, list[tuple[int, float | None, int, int]]] = {}
        for lag in one.partitions:
            if lag.lag is not None and lag.current_offset is not None:
                seconds = snapshot.lag_seconds.get((lag.group_id, lag.place))
                end = lag.log_end_offset or 0
                found = (max(0, lag.lag), seconds, end, lag.current_offset)
                by_topic.setdefault(lag.place.topic, []).append(found)
        for topic, partitions in by_topic.items():
            known = [seconds for _, seconds, _, _ in partitions if seconds is not None]
            samples.append(
                LagSample(
                    snapshot.time_s,
                    snapshot.name,
                    one.group.group_id,
                    topic,
                    sum(lag for lag, _, _, _ in partitions),
                    max(known, default=None),
                    sum(end for _, _, end, _ in partitions),
                    sum(offset for _, _, _, offset in partitions),
                )
            )
    return samples


@contextmanager
def _opened(path: Path, *, create: bool) -> Iterator[sqlite3.Connection]:
    try:
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.exists():
            raise CliError(f"there is no history in {path}", "kctl monitor run --history writes it")
        with closing(sqlite3.connect(path, timeout=10)) as database:
            database.executescript(_SCHEMA)
            yield database
            database.commit()
    except (sqlite3.Error, OSError) as error:
        raise CliError(f"cannot use the history in {path}: {error}", "check --history") from error


def add_samples(path: Path, samples: Sequence[LagSample], keep_s: float) -> None:
    """Add samples, and delete those that are older than `keep_s`."""
    rows = [
        (s.time_s, s.cluster, s.group, s.topic, s.lag, s.lag_seconds, s.produced, s.committed)
        for s in samples
    ]
    with _opened(path, create=True) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.executemany("INSERT INTO lag VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        database.execute("DELETE FROM lag WHERE time_s < ?", (time.time() - keep_s,))


def read_samples(path: Path, group: str, since_s: float, topic: str | None) -> list[LagSample]:
    """The samples of a group since then, by topic and time."""
    query = f"SELECT {_COLUMNS} FROM lag WHERE group_id = ? AND time_s >= ?"  # noqa: S608  # constants
    arguments: tuple[object, ...] = (group, since_s)
    if topic is not None:
        query, arguments = f"{query} AND topic = ?", (*arguments, topic)
    with _opened(path, create=False) as database:
        found = database.execute(f"{query} ORDER BY cluster, topic, time_s", arguments).fetchall()
        return [LagSample(*row) for row in found]


def known_groups(path: Path) -> list[str]:
    """The groups with samples."""
    with _opened(path, create=False) as database:
        found = database.execute("SELECT DISTINCT group_id FROM lag ORDER BY group_id")
        return [group for (group,) in found]
