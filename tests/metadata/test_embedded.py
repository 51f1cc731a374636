"""Guarantees of the embedded store alone: one file, one user, nothing lost."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.metadata.embedded import METADATA_FILE, EmbeddedStore
from broker.metadata.errors import StoreError, StoreInUse
from broker.metadata.store import Create, Delete, EventKind, SetData, WatchEvent

# Writes until it is killed; each line it prints is a change that was answered.
WRITER = """
import asyncio, sys
from pathlib import Path
from broker.metadata.embedded import EmbeddedStore
from broker.metadata.store import Create, SetData

async def main():
    store = EmbeddedStore.open(Path(sys.argv[1]))
    await store.create("/p")
    await store.create("/counter", b"0")
    await store.create("/me", ephemeral=True)
    for n in range(1, 1_000_000):
        await store.multi([
            SetData("/counter", str(n).encode()),
            Create("/p/a", str(n).encode(), sequence=True),
            Create("/p/b", sequence=True),
        ])
        print(n, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / METADATA_FILE


def killed_while_writing(path: Path) -> int:
    """The last change that was acknowledged before the writer was killed."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        first = [writer.stdout.readline() for _ in range(25)]
        writer.kill()
        lines = "".join([*first, writer.stdout.read()]).split("\n")
    return int(lines[-2])  # the last whole line


async def test_every_acknowledged_change_survives_kill_9(path: Path) -> None:
    answered = await asyncio.to_thread(killed_while_writing, path)
    store = EmbeddedStore.open(path)
    counter = int((await store.get("/counter")).data or b"")
    assert counter in (answered, answered + 1)  # the last may have been applied and not printed
    names = await store.children("/p")
    assert len(names) == 2 * counter, "a multi is there whole or not at all"
    assert await store.exists("/me") is None
    assert await store.create("/p/", sequence=True) == f"/p/{2 * counter:010d}"
    await store.close()


async def test_second_user_is_rejected_until_the_first_has_closed_the_store(path: Path) -> None:
    store = EmbeddedStore.open(path)
    with pytest.raises(StoreInUse, match="another process uses"):
        EmbeddedStore.open(path)
    await store.create("/still", b"works")
    await store.close()
    await EmbeddedStore.open(path).close()


async def test_second_process_is_rejected(path: Path) -> None:
    store = EmbeddedStore.open(path)
    code = (
        "import sys; from pathlib import Path; from broker.metadata.embedded import EmbeddedStore\n"
        "EmbeddedStore.open(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(path)]
    answer = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    assert answer.returncode == 1
    assert "StoreInUse" in answer.stderr
    await store.close()


async def test_reopened_store_is_the_same_except_for_ephemerals(path: Path) -> None:
    clock = ManualClock(now_ms=1000)
    store = EmbeddedStore.open(path, clock)
    await store.multi([Create("/a", b"\x00\xff"), Create("/a/none"), Create("/a/empty", b"")])
    clock.advance(500)
    await store.set("/a", b"two")
    await store.create("/a/s_", sequence=True)
    await store.delete("/a/none")
    before = await store.get("/a"), await store.get("/a/empty"), await store.children("/a")
    await store.create("/a/e", ephemeral=True)
    await store.close()

    store = EmbeddedStore.open(path, clock)
    assert (
        await store.get("/a"),
        await store.get("/a/empty"),
        await store.children("/a"),
    ) == before
    assert before[0].stat.ctime == 1000
    assert before[0].stat.mtime == 1500
    await store.close()


async def test_change_that_cannot_be_written_is_undone(path: Path) -> None:
    store = EmbeddedStore.open(path)
    await store.multi([Create("/a", b"one"), Create("/a/b"), Create("/gone")])
    before = await store.get("/a")
    events: list[WatchEvent] = []
    store.watch_data("/a", events.append)
    # From here on SQLite fails as on a full disk: the file may not grow.
    store._database.execute("PRAGMA max_page_count=1")
    with pytest.raises(StoreError, match="full"):
        await store.multi(
            [
                SetData("/a", bytes(100_000)),
                Create("/a/c", bytes(100_000)),
                Delete("/gone"),
                Delete("/a/b"),
            ]
        )
    assert await store.get("/a") == before
    assert await store.children("/a") == ["b"]
    assert await store.exists("/gone")
    store._database.execute("PRAGMA max_page_count=100000")
    await store.set("/a", b"two")
    await asyncio.sleep(0)
    assert events == [(EventKind.CHANGED, "/a")]
    await store.close()
    store = EmbeddedStore.open(path)
    assert (await store.get("/a")).data == b"two"
    assert await store.children("/") == ["a", "gone"]
    await store.close()


async def test_failing_callback_affects_neither_the_writer_nor_other_watches(path: Path) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    store = EmbeddedStore.open(path)
    events: list[WatchEvent] = []

    def fail(event: WatchEvent) -> None:
        raise ValueError(event)

    store.watch_data("/a", fail)
    store.watch_data("/a", events.append)
    await store.create("/a")
    await asyncio.sleep(0)
    assert len(failures) == 1
    assert events == [(EventKind.CREATED, "/a")]
    await store.close()


def test_error_names_a_file_that_is_not_a_store(path: Path) -> None:
    path.write_text("something else, and long enough to be looked at " * 20)
    with pytest.raises(StoreError, match=f"{path}.*not a database"):
        EmbeddedStore.open(path)


def test_store_of_a_newer_format_is_rejected(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version=7")
    database.close()
    with pytest.raises(StoreError, match="newer kctl: format 7"):
        EmbeddedStore.open(path)


def test_error_names_a_file_that_cannot_be_created(tmp_path: Path) -> None:
    path = tmp_path / "missing" / METADATA_FILE
    with pytest.raises(StoreError, match=f"{path}.*unable to open"):
        EmbeddedStore.open(path)


async def test_topic_of_2000_partitions_is_one_quick_change(path: Path) -> None:
    store = EmbeddedStore.open(path)
    operations = [Create("/t", b"x" * 30_000)]
    for n in range(2000):
        operations += [Create(f"/t/{n}"), Create(f"/t/{n}/state", b"x" * 80)]
    started = os.times()
    await store.multi(operations)
    used = os.times()
    assert (used.user + used.system) - (started.user + started.system) < 1.0  # about 0.1
    assert len(await store.children("/t")) == 2000
    await store.close()
