"""`python -m tests.fuzz [--frames N] [--seed N]`: fuzz a broker; exit 1 if it has a problem."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.run import Limits, fuzz
from tests.support.broker import running_broker

ROUND_FRAMES = 20_000


def main() -> int:
    """Fuzz in rounds, each on a new broker, and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first round")
    parser.add_argument("--max-wait", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--max-memory", type=float, default=400.0, metavar="MB")
    arguments = parser.parse_args()
    limits = Limits(arguments.max_wait, arguments.max_memory)
    left, seed = arguments.frames, arguments.seed
    status = 0
    while left > 0:
        with (
            tempfile.TemporaryDirectory(prefix="kctl-fuzz-") as directory,
            running_broker(Path(directory)) as broker,
        ):
            began = time.monotonic()
            report = fuzz(broker, min(left, ROUND_FRAMES), seed, limits)
            print(f"seed {seed}: {report}; {time.monotonic() - began:.0f} s", flush=True)
            if report.problems:
                print("\n".join(report.problems))
                status = 1
        left -= ROUND_FRAMES
        seed += 1
    return status


if __name__ == "__main__":
    sys.exit(main())
