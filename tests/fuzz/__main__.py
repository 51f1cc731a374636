"""`python -m tests.fuzz [--frames N] [--batches N] [--segments N]`; exit 1 after a problem."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.batches import fuzz_batches
from tests.fuzz.run import Limits, fuzz
from tests.fuzz.segments import fuzz_segments
from tests.support.broker import running_broker

ROUND_FRAMES = 100_000
ROUND_DIRECTORIES = 500


def main() -> int:
    """Fuzz in rounds, each on a new broker, and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first round")
    parser.add_argument("--batches", type=int, default=0, metavar="N", help="damaged batches too")
    parser.add_argument("--segments", type=int, default=0, metavar="N", help="damaged directories")
    parser.add_argument("--connections", type=int, default=16, metavar="N", help="at a time")
    parser.add_argument("--max-wait", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--max-memory", type=float, default=400.0, metavar="MB")
    arguments = parser.parse_args()
    limits = Limits(arguments.max_wait, arguments.max_memory)
    left, seed = arguments.frames, arguments.seed
    status = _fuzz_files(arguments.batches, arguments.segments, seed)
    while left > 0:
        with (
            tempfile.TemporaryDirectory(prefix="kctl-fuzz-") as directory,
            running_broker(Path(directory)) as broker,
        ):
            began = time.monotonic()
            count = min(left, ROUND_FRAMES)
            report = fuzz(broker, count, seed, limits, arguments.connections)
            print(f"seed {seed}: {report}; {time.monotonic() - began:.0f} s", flush=True)
            if report.problems:
                print("\n".join(report.problems))
                status = 1
        left -= ROUND_FRAMES
        seed += 1
    return status


def _fuzz_files(num_batches: int, num_segments: int, seed: int) -> int:
    """Damaged batches and partition directories, without a broker process."""
    problems: list[str] = []
    for start in range(0, num_batches, ROUND_FRAMES):
        accepted, found = fuzz_batches(min(ROUND_FRAMES, num_batches - start), seed + start)
        done = min(start + ROUND_FRAMES, num_batches)
        print(f"batches to {done:,}: {accepted:,} accepted", flush=True)
        problems += found
    for start in range(0, num_segments, ROUND_DIRECTORIES):
        problems += fuzz_segments(min(ROUND_DIRECTORIES, num_segments - start), seed + start)
        print(f"directories to {min(start + ROUND_DIRECTORIES, num_segments):,}", flush=True)
    print("\n".join(problems))
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
