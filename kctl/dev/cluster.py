"""Several brokers on this machine as one cluster: settings and readiness."""

import asyncio

from broker.net.authentication import PLAINTEXT, Security
from broker.net.client import Client, NoBrokerAvailable, RequestTimedOut
from kctl.cli.errors import CliError

_READY_TIMEOUT_S = 60
_POLL_S = 0.05


def cluster_settings(zookeeper: str, brokers: int) -> dict[str, str]:
    """The settings of a cluster of this size; short sessions detect failures soon."""
    replicas = str(min(3, brokers))
    return {
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": "6000",
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(2, brokers)),
        "controlled.shutdown.retry.backoff.ms": "200",
    }


def wait_until_ready(addresses: list[str], security: Security = PLAINTEXT) -> None:
    """Return when all brokers are registered and there is a controller; CliError after a minute."""
    try:
        asyncio.run(_know_each_other(addresses, security))
    except (TimeoutError, OSError) as error:
        raise CliError(
            "the brokers are running but do not form a cluster", "see kctl dev logs"
        ) from error


async def _know_each_other(addresses: list[str], security: Security) -> None:
    async with asyncio.timeout(_READY_TIMEOUT_S):
        for address in addresses:
            async with Client(address, security=security) as client:
                while not await _knows(client, len(addresses)):  # noqa: ASYNC110  # there is no event to wait for
                    await asyncio.sleep(_POLL_S)


async def _knows(client: Client, brokers: int) -> bool:
    try:
        await client.refresh_metadata()
    except (NoBrokerAvailable, RequestTimedOut):
        return False
    return len(client.cluster.nodes) >= brokers and client.cluster.controller_id >= 0
