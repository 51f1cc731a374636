"""APIs and versions that the brokers support."""

from broker.net.client import Client
from kctl.admin.broker_queries import every_broker
from kctl.admin.cluster import describe_cluster
from kctl.model.api_versions import ApiRange
from kctl.model.cluster import Broker


async def api_versions_of(client: Client) -> list[tuple[Broker, list[ApiRange]]]:
    """The APIs that each broker supports, sorted by API key; brokers in the order of their ids."""
    brokers = (await describe_cluster(client)).brokers
    answers = await every_broker(client, client.versions_of)
    return [
        (broker, [ApiRange(key, *answers[broker.id][key]) for key in sorted(answers[broker.id])])
        for broker in brokers
        if broker.id in answers
    ]
