"""Handle UpdateFeatures (KIP-584); controller only.

A ZooKeeper cluster of Kafka 3.9 supports no feature that could be finalized, so every update is
refused. The checks are made nevertheless, because each has its own error message.

Versions:
    v1 validate_only, types of upgrade

Deliberately missing: finalized features.
"""

from collections.abc import Iterable
from typing import Final

from broker.api.authorization import MESSAGES, authorize_cluster
from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from broker.security.acls import AclOperation

_UPGRADE: Final = 1
_SAFE_DOWNGRADE: Final = 2
_UNSAFE_DOWNGRADE: Final = 3
_FIRST_VERSION_OF_UPGRADE_TYPES: Final = 1


def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    """Refuse every update, with the message of the check that fails."""
    authorize_cluster(context, AclOperation.ALTER)
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(
                feature=update.feature,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=_problem(update, _upgrade_type(update, context.api_version)),
            )
            for update in _first_of_each(request.feature_updates)
        ],
    )


def _first_of_each(updates: Iterable[FeatureUpdateKey]) -> Iterable[FeatureUpdateKey]:
    first: dict[str, FeatureUpdateKey] = {}
    for update in updates:
        first.setdefault(update.feature, update)
    return first.values()


def _upgrade_type(update: FeatureUpdateKey, version: int) -> int:
    if version >= _FIRST_VERSION_OF_UPGRADE_TYPES:
        return update.upgrade_type
    return _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE


def _problem(update: FeatureUpdateKey, upgrade_type: int) -> str:
    level = update.max_version_level
    if not update.feature:
        return "Feature name can not be empty."
    if upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return "Received unknown upgrade type."
    if level < 1 and upgrade_type != _UPGRADE:
        return "Can not delete non-existing finalized feature."
    if level < 1:
        return (
            f"Can not provide versionLevel: {level} less than 1 without setting the SAFE "
            "downgradeType in the request."
        )
    return "Could not apply finalized feature update because the provided feature is not supported."


def error_response(request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
    """The error of the request."""
    return UpdateFeaturesResponse(error_code=code, error_message=MESSAGES.get(code))
