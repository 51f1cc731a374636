"""Fuzzes the files of a partition: damaged ones are loaded, recovered and dumped.

Loading after a crash may cost records but must not invent any: those that are left are a prefix of
what was written, each as it was. Neither loading nor `kctl dump-log` may end with a traceback.
"""

import logging
import random
import shutil
import tempfile
from pathlib import Path

from broker.clock import ManualClock
from broker.errors import ApiError, CorruptRecord
from broker.log.checkpoints import CorruptCheckpoint
from broker.log.config import LogConfig
from broker.log.environment import LogEnvironment
from broker.log.offsets import FetchIsolation
from broker.log.partition_log import PartitionLog
from broker.log.recovery import LoadFrom, load_log
from broker.model import TopicPartition
from broker.records.batch import check_crc, iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec
from tests.fuzz.mutate import mutate
from tests.support.kctl import run_kctl

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("fuzz", 0)
CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=100)
Stored = list[tuple[int, bytes | None]]


def fuzz_segments(count: int, seed: int, *, with_dump: bool = True) -> list[str]:
    """Damage a partition's directory `count` times; what went wrong."""
    rng = random.Random(seed)
    problems = []
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory(prefix="kctl-fuzz-") as name:
            original = Path(name, "original", "fuzz-0")
            written = _write(original, rng)
            for number in range(count):
                damaged = Path(name, "damaged", "fuzz-0")
                shutil.copytree(original, damaged)
                damage = _damage(damaged, rng)
                found = _dump(damaged) if with_dump else None
                found = found or _load(damaged, written, rng)
                if found:
                    problems.append(f"seed {seed}, number {number}: {damage}: {found}")
                shutil.rmtree(damaged)
    finally:
        logging.disable(logging.NOTSET)
    return problems


def _write(directory: Path, rng: random.Random) -> Stored:
    """A log of several segments, not closed, as a crash leaves it."""
    directory.mkdir(parents=True)
    log = _open(directory, LoadFrom())
    for number in range(40):
        rows = [(n, NOW_MS + number, b"k", rng.randbytes(20), ()) for n in range(rng.randint(1, 4))]
        settings = BatchSettings(codec=rng.choice(list(Codec)))
        if number % 3 == 0:
            settings = BatchSettings(producer_id=7, producer_epoch=0, base_sequence=number)
            rows = rows[:1]
        try:
            log.append_as_leader(build_batch(rows, settings), number // 10)
        except ApiError:
            continue  # a sequence that does not follow
    return _records(log)


def _open(directory: Path, load_from: LoadFrom) -> PartitionLog:
    return load_log(
        directory, PARTITION, CONFIG, LogEnvironment(clock=ManualClock(NOW_MS)), load_from
    )


def _records(log: PartitionLog) -> Stored:
    found: Stored = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        fetched = log.read(offset, 1 << 20, FetchIsolation.LOG_END)
        data = fetched.records.read() if fetched.records is not None else b""
        if not data:
            break
        for batch in iterate_batches(data):
            check_crc(batch)
            found += [(record.offset, record.value) for record in batch.records()]
            offset = batch.next_offset
    return found


def _damage(directory: Path, rng: random.Random) -> str:
    done = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        path = rng.choice(sorted(directory.iterdir()))
        data = path.read_bytes()
        kind = rng.randrange(6)
        match kind:
            case 0 | 1:
                path.write_bytes(mutate(data[:65536], rng))
            case 2:
                path.write_bytes(data[: rng.randrange(len(data) + 1)])
            case 3:
                path.write_bytes(data + bytes(rng.choice([1, 12, 100, 5000])))
            case 4:
                path.write_bytes(rng.randbytes(rng.choice([0, 1, 12, 100, 5000])))
            case _:
                path.unlink()
        done.append(f"{kind} {path.name}")
        if not any(directory.iterdir()):
            break
    return ", ".join(done)


def _load(directory: Path, written: Stored, rng: random.Random) -> str | None:
    point = rng.choice([0, 0, len(written) // 2])
    try:
        log = _open(directory, LoadFrom(is_clean=False, recovery_point=point))
        # What was flushed before the crash is not read again.
        found = _records(log) if not point else None
    except (CorruptCheckpoint, CorruptRecord):
        return None  # LogManager takes this partition offline, with a line that names the file
    except Exception as error:  # noqa: BLE001  # the finding
        return f"loading: {type(error).__name__}: {error}"
    if found is not None and not set(found) <= set(written):
        return f"loading: records that were not written: {sorted(set(found) - set(written))[:3]}"
    return None


def _dump(directory: Path) -> str | None:
    files = [str(path) for path in sorted(directory.iterdir())]
    for extra in ([], ["--check"]):
        result = run_kctl("dump-log", *extra, *files)
        if "Traceback" in result.stderr or "internal error" in result.stderr:
            return f"dump-log {extra}: {result.stderr[-300:]}"
    return None
