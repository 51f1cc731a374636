"""Decoding 100-byte records: our decoder compiled and uncompiled, kafka-python's, aiokafka's."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from aiokafka.record.default_records import DefaultRecordBatch as CompiledPeerBatch
from kafka.record.default_records import DefaultRecordBatch as PeerBatch

from bench.__main__ import main
from bench.report import Comparison, seconds_per_call
from broker import records
from broker.records import decoder as installed
from broker.records.batch import iterate_batches
from broker.records.builder import BatchSettings, build_batch
from broker.records.layout import Codec
from broker.records.record import RecordTuple

# Several times as many as a producer's batch of 16 KB holds.
COUNT: Final = 500
VALUE_BYTES: Final = 100
NOW: Final = 1_700_000_000_000

PURE_GOAL: Final = 1.0  # million records/s
COMPILED_GOAL: Final = 5.0  # times pure


def run() -> Iterator[Comparison]:
    """Decode records without keys (as perf tools send them), with keys, then whole batches."""
    yield from _decoders("no key", build_batch(_records(None)), PURE_GOAL)
    yield from _decoders("key of 9", build_batch(_records(b"key-12345")))
    yield from _batches(_records(b"key-12345"))


def _decoders(name: str, data: bytes, goal: float | None = None) -> Iterator[Comparison]:
    (batch,) = iterate_batches(data)
    arguments = (batch.records_data(), COUNT, 0, NOW)
    pure = _pure_decoder()
    actions: list[Callable[[], object]] = [
        lambda: pure.decode_records(*arguments),
        lambda: pure.decode_columns(*arguments),
        lambda: installed.decode_records(*arguments),
        lambda: installed.decode_columns(*arguments),
        lambda: list(PeerBatch(data)),
        lambda: list(CompiledPeerBatch(data)),
    ]
    rates = [COUNT / seconds / 1e6 for seconds in seconds_per_call(*actions)]
    pure_records, pure_columns, records_, columns, peer, compiled_peer = rates
    if goal is not None:
        yield _rate(f"pure, {name}", pure_records, goal, "goal", 1)
    yield _rate(f"pure, {name}", pure_records, peer, "kafka-python")
    yield _rate(f"pure columns, {name}", pure_columns, peer, "kafka-python")
    if installed.__file__.endswith(".py"):  # not compiled on this machine
        return
    yield _rate(f"compiled, {name}", records_, pure_records, "pure", COMPILED_GOAL)
    yield _rate(f"compiled, {name}", records_, compiled_peer, "aiokafka (C)")
    yield _rate(f"compiled columns, {name}", columns, compiled_peer, "aiokafka (C)")


def _batches(rows: list[RecordTuple]) -> Iterator[Comparison]:
    """Decode whole batches: header, decompression and records."""
    for codec in Codec:
        data = build_batch(rows, BatchSettings(codec=codec))
        ours, theirs = seconds_per_call(
            lambda data=data: next(iterate_batches(data)).record_tuples(),  # type: ignore[misc]
            lambda data=data: list(CompiledPeerBatch(data)),  # type: ignore[misc]
        )
        name = f"whole batch, {codec.name.lower()}"
        yield _rate(name, COUNT / ours / 1e6, COUNT / theirs / 1e6, "aiokafka (C)")


def _rate(
    what: str, ours: float, theirs: float, peer: str, goal: float | None = None
) -> Comparison:
    return Comparison(what, ours, theirs, peer, "M/s", goal, more_is_better=True)


def _records(key: bytes | None) -> list[RecordTuple]:
    """Records of 100 bytes (key and value); half is random, so that compression has work to do."""
    value_bytes = VALUE_BYTES - len(key or b"")
    half = value_bytes // 2
    return [
        (number, NOW + number // 10, key, os.urandom(half) + bytes(value_bytes - half), ())
        for number in range(COUNT)
    ]


def _pure_decoder() -> ModuleType:
    """decoder.py run by the interpreter, even where its compiled form is installed."""
    path = Path(records.__path__[0]) / "decoder.py"
    spec = importlib.util.spec_from_file_location("pure_decoder", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main([Path(__file__).stem]))
