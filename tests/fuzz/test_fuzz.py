"""A short run of the fuzzer with every `make test`; `make fuzz` runs for longer."""

import random
from pathlib import Path

import pytest

from broker.api.table import TABLE
from broker.protocol.codec import decode_from
from broker.protocol.headers import read_request_header
from broker.protocol.messages import request_class
from tests.fuzz.batches import fuzz_batches
from tests.fuzz.generate import Generator
from tests.fuzz.run import Limits, fuzz
from tests.fuzz.segments import fuzz_segments
from tests.support.broker import running_broker


def test_generated_requests_are_valid() -> None:
    requests = [request_class(key) for key in sorted(TABLE)]
    generator = Generator(random.Random(1), requests)
    seen = set()
    for _ in range(2000):
        frame = memoryview(generator.frame())
        api_key, version, _, _, body = read_request_header(frame)
        decode_from(request_class(api_key), frame, body, version)
        seen.add(api_key)
    assert seen == set(TABLE)


@pytest.mark.timeout(240)
def test_broker_survives_fuzzed_requests(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        report = fuzz(broker, frames=3000, seed=1, limits=Limits(wait_s=20, memory_mb=400))
        assert not report.problems, broker.output()[-3000:]
        assert report.innocent_requests > 10


def test_damaged_batches_are_refused_or_readable() -> None:
    accepted, problems = fuzz_batches(600, seed=1)
    assert problems == []
    assert accepted > 50


def test_damaged_directories_are_loaded_and_dumped_without_traceback() -> None:
    assert fuzz_segments(15, seed=1) == []
