"""`python -m broker [server.properties] [--override KEY=VALUE ...]`, installed as kctl-broker."""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from broker.config import BrokerConfig, ConfigError, load_config
from broker.errors import ApiError
from broker.metadata.errors import StoreError
from broker.net.file_descriptors import raise_soft_limit
from broker.net.poller import BrokerLoop
from broker.server import Server, StartAborted
from broker.server.identity import IdentityError
from broker.server.kafka_opts import with_jaas_file
from broker.server.log_format import configure_logging

logger = logging.getLogger("broker")

_GC_THRESHOLDS = (10_000, 10, 1_000_000)
"""Requests leave few reference cycles behind, so the collector may run seldom. The product of the
first two bounds how many objects of a large request it looks at in one pause."""
_CANNOT_START = (ConfigError, IdentityError, StoreError, ApiError, OSError)
"""What ends a broker with one line instead of a traceback."""
_SWITCH_INTERVAL_S = 0.001
"""How long the event loop waits while another thread runs Python code, such as a scrape of the
admin port; Python's default is 5 ms."""


def main() -> None:
    """Run a broker until SIGTERM or SIGINT; exit with status 1 and one line if it cannot start."""
    arguments = make_parser().parse_args()
    configure_logging(verbose=arguments.verbose)
    before, now = raise_soft_limit()
    if now != before:
        logger.info("raised the limit of open files from=%s to=%s", before, now)
    try:
        config = load_config(arguments.properties, dict(arguments.override))
        config = with_jaas_file(config, os.environ)
        if arguments.workers is None:
            _run(config)
        else:
            _run_workers(arguments, config)
    except _CANNOT_START as error:
        sys.exit(f"kctl-broker: {error}")


def _run(config: BrokerConfig, on_started: Callable[[], object] | None = None) -> None:
    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        runner.run(_serve(config, on_started))


def _run_workers(arguments: argparse.Namespace, config: BrokerConfig) -> None:
    """Run several brokers in processes of their own, until all have ended."""
    from broker.server.workers import run_workers, worker_settings

    overrides = dict(arguments.override)

    def serve(number: int, alive: int, report_started: Callable[[], object]) -> None:
        own = overrides | worker_settings(config, number, arguments.workers)
        try:
            settings = with_jaas_file(load_config(arguments.properties, own), os.environ)
            _run(settings, lambda: _follow_supervisor(alive, report_started))
        except _CANNOT_START as error:
            sys.exit(f"kctl-broker: worker {number}: {error}")

    run_workers(config, arguments.workers, serve, verbose=arguments.verbose)


def _follow_supervisor(alive: int, report_started: Callable[[], object]) -> None:
    """Report that this worker serves clients, and stop it when the supervisor has died."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(alive)
        os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(alive, stop)
    report_started()


def make_parser() -> argparse.ArgumentParser:
    """The command-line parser; the manual page is generated from it."""
    parser = argparse.ArgumentParser(
        prog="kctl-broker", description="Run a Kafka-compatible broker."
    )
    parser.add_argument(
        "properties",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a server.properties file (default: Kafka's default settings)",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        type=_key_value,
        metavar="KEY=VALUE",
        help="override a setting of the file; can be repeated",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="run N brokers on this machine, which use a core each; they need a ZooKeeper",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log debug messages")
    return parser


def _key_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not (key and separator):
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value.strip()


def tune_interpreter() -> None:
    """Keep the collector and other threads from delaying the event loop."""
    # With Python's default, the collector takes most of the time of loading 10,000 logs: it looks
    # at all of them again and again.
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)


def freeze_objects() -> None:
    """Keep the collector's pauses out of the latency of requests.

    Everything allocated so far lives until the end, so the collector need not look at it again.
    """
    gc.collect()
    gc.freeze()


async def _serve(config: BrokerConfig, on_started: Callable[[], object] | None) -> None:
    server = Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stopping.set)
    tune_interpreter()
    try:
        await server.start()
    except StartAborted:
        return
    freeze_objects()
    if on_started is not None:
        on_started()
    await server.stopping.wait()
    await server.stop()
    if server.has_failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
