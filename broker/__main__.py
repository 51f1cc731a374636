"""`python -m broker [server.properties] [--override KEY=VALUE ...]`, installed as kctl-broker."""

import argparse
import asyncio
import gc
import logging
import signal
import sys
from pathlib import Path

from broker.config import BrokerConfig, ConfigError, load_config
from broker.errors import ApiError
from broker.metadata.errors import StoreError
from broker.net.file_descriptors import raise_soft_limit
from broker.net.poller import BrokerLoop
from broker.server import Server, StartAborted
from broker.server.identity import IdentityError
from broker.server.log_format import configure_logging

logger = logging.getLogger("broker")

_GC_THRESHOLDS = (10_000, 10, 25_000)
"""Requests leave few reference cycles behind, so the collector may run seldom. The product of the
first two bounds how many objects of a large request it looks at in one pause."""


def main() -> None:
    """Run a broker until SIGTERM or SIGINT; exit with status 1 and one line if it cannot start."""
    arguments = _parse_arguments()
    configure_logging(verbose=arguments.verbose)
    before, now = raise_soft_limit()
    if now != before:
        logger.info("raised the limit of open files from=%s to=%s", before, now)
    try:
        config = load_config(arguments.properties, dict(arguments.override))
        with asyncio.Runner(loop_factory=BrokerLoop) as runner:
            runner.run(_serve(config))
    except (ConfigError, IdentityError, StoreError, ApiError, OSError) as error:
        sys.exit(f"kctl-broker: {error}")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="kctl-broker", description="Run a Kafka-compatible broker."
    )
    parser.add_argument(
        "properties",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="server.properties (default: Kafka's default settings)",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        type=_key_value,
        metavar="KEY=VALUE",
        help="override a setting of the file; can be repeated",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log debug messages")
    return parser.parse_args()


def _key_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not (key and separator):
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value.strip()


def _tune_garbage_collector() -> None:
    """Keep the collector's pauses out of the latency of requests.

    Everything allocated so far lives until the end, so the collector need not look at it again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


async def _serve(config: BrokerConfig) -> None:
    server = Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stopping.set)
    try:
        await server.start()
    except StartAborted:
        return
    _tune_garbage_collector()
    await server.stopping.wait()
    await server.stop()
    if server.has_failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
