"""`python -m tests.simulation [--seed N | --seeds A-B]`: replay one seed, or run many."""

import argparse
import ctypes
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.simulation.bugs import BUGS
from tests.simulation.run import FAULT_S, Result, simulate

_ADDR_NO_RANDOMIZE = 0x0040000
"""Linux: no address space layout randomization after the next exec."""


def main() -> int:
    """Run seeds; exit 1 if one of them found a problem."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run one seed and print its log")
    parser.add_argument("--seeds", metavar="A-B", help="run these seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--seconds", type=float, default=FAULT_S, help="virtual seconds of faults")
    parser.add_argument("--bug", choices=sorted(BUGS), help="put this bug into the brokers")
    parser.add_argument("--quiet", action="store_true", help="with --seed: only the result")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        _restart_reproducibly()
    if arguments.seed is not None:
        if arguments.bug:
            BUGS[arguments.bug]()
        return _one(arguments.seed, arguments.seconds, quiet=arguments.quiet)
    first, _, last = (arguments.seeds or "1-20").partition("-")
    options = ["--seconds", str(arguments.seconds)]
    options += ["--bug", arguments.bug] if arguments.bug else []
    return _many(range(int(first), int(last or first) + 1), options, arguments.jobs)


def _restart_reproducibly() -> None:
    """Begin again with the order of sets fixed, which is part of a replay.

    That of strings depends on the hash seed, that of objects on their addresses.
    """
    ctypes.CDLL(None).personality(_ADDR_NO_RANDOMIZE)
    command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
    os.execve(sys.executable, command, os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S606


def _one(seed: int, seconds: float, *, quiet: bool) -> int:
    result = simulate(seed, fault_s=seconds)
    if not quiet:
        print("\n".join(result.log))
    print(_summary(result), flush=True)
    # At once: tearing down unfinished coroutines would only produce noise.
    os._exit(result.problem is not None)


def _summary(result: Result) -> str:
    if result.problem is None:
        return f"seed {result.seed}: ok, {result.acknowledged} batches, {result.digest[:12]}"
    return f"seed {result.seed}: FAILED: {result.problem}"


def _many(seeds: range, options: list[str], jobs: int) -> int:
    started = time.monotonic()
    failed = []

    def run(seed: int) -> None:
        command = [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--quiet"]
        done = subprocess.run([*command, *options], capture_output=True, text=True)
        if done.returncode:
            failed.append(seed)
            print(done.stdout.strip() or f"seed {seed}: {done.stderr[-2000:]}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, seeds))
    minutes = (time.monotonic() - started) / 60
    print(f"{len(seeds)} seeds in {minutes:.1f} min, {len(failed)} failed: {sorted(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
