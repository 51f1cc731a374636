"""Features of a cluster: which levels the brokers support, and which are finalized."""

from collections.abc import Sequence
from enum import IntEnum

from broker.errors import ErrorCode
from broker.net.client import Client
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kctl import __version__
from kctl.admin.broker_queries import change_by_controller
from kctl.model.features import Feature, Features, FeatureUpdate
from kctl.model.outcomes import Outcome, outcome


class UpgradeType(IntEnum):
    """Which changes of a level the controller allows."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


async def describe_features(client: Client) -> Features:
    """The features that a broker supports; none in clusters that use ZooKeeper."""
    request = ApiVersionsRequest(client_software_name="kctl", client_software_version=__version__)
    answer = await client.send(request)
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    features = (
        Feature(one.name, one.min_version, one.max_version, finalized.get(one.name, 0))
        for one in answer.supported_features
    )
    epoch = answer.finalized_features_epoch
    ordered = tuple(sorted(features, key=lambda feature: feature.name))
    return Features(ordered, epoch if epoch >= 0 else None)


async def update_features(
    client: Client,
    updates: Sequence[FeatureUpdate],
    upgrade_type: UpgradeType,
    *,
    validate_only: bool,
) -> list[Outcome]:
    """Change all levels or none; the outcome of each feature, sorted by name."""
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(
                feature=one.name, max_version_level=one.level, upgrade_type=upgrade_type
            )
            for one in updates
        ],
        validate_only=validate_only,
    )
    answer = await change_by_controller(client, request)
    failed = {one.feature: (one.error_code, one.error_message) for one in answer.results}
    if answer.error_code:
        failed = {one.name: (answer.error_code, answer.error_message) for one in updates}
    names = sorted(update.name for update in updates)
    return [outcome(name, *failed.get(name, (ErrorCode.NONE, None))) for name in names]
