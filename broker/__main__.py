"""`python -m broker [server.properties] [--override key=value ...]`, installed as kctl-broker."""

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from broker.config import BrokerConfig, ConfigError, load_config
from broker.errors import ApiError
from broker.identity import IdentityError
from broker.metadata.errors import StoreError
from broker.net.poller import BrokerLoop
from broker.server import Server, StartAbandoned


def main() -> None:
    """Run a broker until SIGTERM or SIGINT; status 1 and one line when it cannot start."""
    arguments = _parse_arguments()
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if arguments.verbose else logging.INFO,
        format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)",
    )
    try:
        config = load_config(arguments.properties, dict(arguments.override))
        with asyncio.Runner(loop_factory=BrokerLoop) as runner:
            runner.run(_serve(config))
    except (ConfigError, IdentityError, StoreError, ApiError, OSError) as error:
        sys.exit(f"kctl-broker: {error}")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kctl-broker", description="A Kafka-compatible broker.")
    parser.add_argument(
        "properties", nargs="?", type=Path, help="server.properties; without it, Kafka's defaults"
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        type=_key_value,
        metavar="key=value",
        help="set one key, over the file; can be given again",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="log more")
    return parser.parse_args()


def _key_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not (key and separator):
        raise argparse.ArgumentTypeError(f"{text!r} is not key=value")
    return key.strip(), value.strip()


async def _serve(config: BrokerConfig) -> None:
    server = Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stopping.set)
    try:
        await server.start()
    except StartAbandoned:
        return
    await server.stopping.wait()
    await server.stop()
    if server.has_failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
