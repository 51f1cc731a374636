"""Example data for a development cluster: topics, records and a consumer group with lag."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator

from kctl.cli.errors import CliError

ORDERS = 1000
CLICKS = 3000
_READ = 400
"""Orders that the group `billing` has read."""
_CUSTOMERS = ("anna", "ben", "cleo", "dan", "eve", "finn")
_FRUIT = ("apple", "pear", "plum", "fig", "quince")
_PAGES = ("/", "/basket", "/checkout", "/fruit")


def seed(bootstrap_servers: str) -> None:
    """Create `orders`, `clicks` and the group `billing`; the records are the same every time."""
    for topic, partitions in (("orders", 3), ("clicks", 6)):
        _kctl(bootstrap_servers, "topics", "create", topic, "-p", str(partitions))
    for topic, lines in (("orders", _orders()), ("clicks", _clicks())):
        _kctl(bootstrap_servers, "produce", topic, "-K", "|", text="".join(lines))
    _kctl(bootstrap_servers, "consume", "orders", "-g", "billing", "-e", "-n", str(_READ))


def _orders() -> Iterator[str]:
    chance = random.Random(24)  # noqa: S311 - nothing secret
    for number in range(ORDERS):
        customer = chance.choice(_CUSTOMERS)
        order = {
            "id": number,
            "customer": customer,
            "fruit": chance.choice(_FRUIT),
            "count": chance.randint(1, 12),
        }
        yield f"{customer}|{json.dumps(order)}\n"


def _clicks() -> Iterator[str]:
    chance = random.Random(42)  # noqa: S311 - nothing secret
    for _ in range(CLICKS):
        customer = chance.choice(_CUSTOMERS)
        yield f"{customer}|{json.dumps({'customer': customer, 'page': chance.choice(_PAGES)})}\n"


def _kctl(bootstrap_servers: str, *args: str, text: str = "") -> None:
    words = [sys.executable, "-m", "kctl", "-b", bootstrap_servers, *args]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise CliError(
            f"the example data is incomplete: {done.stderr.strip().splitlines()[0]}",
            "the brokers are running; kctl dev down --delete-data starts over",
        )
