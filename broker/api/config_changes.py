"""Changes of configs, as AlterConfigs and IncrementalAlterConfigs share them.

Kafka checks twice, and which check fails decides the error code and the message. First, on the
broker that received the request: form, broker ids, values of broker configs (INVALID_REQUEST).
Then, where the change is made: topics and their configs (INVALID_CONFIG and others).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from broker.api.authorization import authorize_cluster, is_authorized
from broker.api.context import RequestContext, Services
from broker.config.alterations import Alteration
from broker.config.broker import BrokerConfig
from broker.config.checks import RequirementFailed
from broker.config.definitions import Setting
from broker.config.dynamic import CLUSTER_DEFAULT, DynamicConfig, EntityType
from broker.config.loggers import check_levels, set_levels
from broker.config.reconfiguration import usable
from broker.config.topic import TopicConfig
from broker.config.values import ConfigError, is_whole_number
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.alter_configs import AlterConfigsResourceResponse
from broker.security.acls import AclOperation
from broker.security.acls import ResourceType as AclResourceType


class ResourceType(IntEnum):
    """Types of resources that have configs, by their numbers in the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16


Outcome = tuple[ErrorCode, str | None]
_DONE: Outcome = (ErrorCode.NONE, None)
_WITHOUT_MESSAGE = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
"""Errors that Kafka sends without a message."""


@dataclass(frozen=True)
class Change:
    """The change of one resource in a request."""

    resource_type: int
    name: str
    keys: list[str]
    nulls: list[str]
    """Keys to be set whose value is null."""
    result: Callable[[Mapping[str, str], Mapping[str, Setting]], dict[str, str]]
    """Computes the configs after the change from those before; takes the known keys too."""
    levels: Callable[[], list[Alteration]] | None
    """The change as levels of loggers; None for AlterConfigs, which cannot change them."""


async def make_changes(
    changes: list[Change], context: RequestContext, *, validate_only: bool
) -> list[Outcome]:
    """Make each change, or only check it; a failure concerns only its resource."""
    times = Counter((change.resource_type, change.name) for change in changes)
    outcomes: list[Outcome] = []
    for change in changes:
        if times[change.resource_type, change.name] > 1:
            problem = "Each resource must appear at most once."
            outcomes.append((ErrorCode.INVALID_REQUEST, problem))
        else:
            outcomes.append(await _outcome(change, context, validate_only))
    return outcomes


class Resource(Protocol):
    """A resource of either request."""

    @property
    def resource_type(self) -> int:
        """A `ResourceType`, or a number that is not one."""
        ...

    @property
    def resource_name(self) -> str:
        """The topic or broker id; empty for the defaults of all brokers."""
        ...


def responses(
    resources: Iterable[Resource], outcomes: Iterable[Outcome]
) -> list[AlterConfigsResourceResponse]:
    """The outcomes in the form that both APIs have."""
    return [
        AlterConfigsResourceResponse(
            error_code=code,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, (code, message) in zip(resources, outcomes, strict=True)
    ]


async def _outcome(change: Change, context: RequestContext, validate_only: bool) -> Outcome:
    try:
        _check_form(change)
        async with context.services.dynamic.changing:
            await _make(change, context, validate_only)
    except ApiError as error:
        return error.code, None if error.code in _WITHOUT_MESSAGE else error.message
    except ConfigError as error:
        kind = ResourceType(change.resource_type).name
        resource = f"ConfigResource(type={kind}, name='{change.name}')"
        problem = f"Invalid config value for resource {resource}: {error}"
        # An ApiError cuts the message to what a response can carry.
        return ErrorCode.INVALID_CONFIG, ApiError(ErrorCode.INVALID_CONFIG, problem).message
    return _DONE


def _check_form(change: Change) -> None:
    if len(set(change.keys)) < len(change.keys):
        raise _invalid_request("Error due to duplicate config keys")
    if change.nulls:
        raise _invalid_request(f"Null value not supported for : {', '.join(change.nulls)}")


async def _make(change: Change, context: RequestContext, validate_only: bool) -> None:
    services = context.services
    if change.resource_type == ResourceType.TOPIC:
        _authorize_topic(change.name, context)
        await _change_topic(change, services, validate_only)
    elif change.resource_type == ResourceType.BROKER:
        await _change_broker(change, context, validate_only)
    elif change.resource_type == ResourceType.BROKER_LOGGER and change.levels:
        authorize_cluster(context, AclOperation.ALTER_CONFIGS)
        _change_levels(change.name, change.levels, services.dynamic.broker_id, validate_only)
    elif change.resource_type == ResourceType.CLIENT_METRICS:
        raise _invalid_request(
            "AlterConfigs is only supported for topics and brokers, "
            "but resource type is CLIENT_METRICS"
        )
    else:
        raise _invalid_request(f"Unknown resource type {change.resource_type}")


def _authorize_topic(name: str, context: RequestContext) -> None:
    if not is_authorized(context, AclOperation.ALTER_CONFIGS, AclResourceType.TOPIC, name):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


async def _change_topic(change: Change, services: Services, validate_only: bool) -> None:
    topic, dynamic = change.name, services.dynamic
    if not topic:
        raise _invalid_request("Default topic resources are not allowed.")
    is_known = topic in services.metadata.topics
    current = await services.config_store.read(EntityType.TOPIC, topic) if is_known else {}
    config = change.result(current, TopicConfig.settings)
    if not is_known:
        problem = f"The topic '{topic}' does not exist."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, problem)
    dynamic.validate_topic(config)
    if not validate_only:
        await services.config_store.write(EntityType.TOPIC, topic, config)
        dynamic.apply(EntityType.TOPIC, topic, config)


async def _change_broker(change: Change, context: RequestContext, validate_only: bool) -> None:
    """Values are checked before permissions, as in Kafka."""
    services = context.services
    dynamic, per_broker = services.dynamic, bool(change.name)
    if per_broker:
        _check_broker_id(change.name, dynamic.broker_id, "broker id, expected {}")
    name = change.name or CLUSTER_DEFAULT
    stored = await services.config_store.read(EntityType.BROKER, name)
    kept, _ = usable(dynamic.decoded(stored), per_broker=per_broker)
    config = change.result(kept, BrokerConfig.settings)
    _check_broker_config(dynamic, config, per_broker=per_broker)
    authorize_cluster(context, AclOperation.ALTER_CONFIGS)
    if validate_only:
        return
    written = dynamic.encoded(config, stored)
    await services.config_store.write(EntityType.BROKER, name, written)
    dynamic.apply(EntityType.BROKER, name, written)


def _check_broker_config(
    dynamic: DynamicConfig, config: Mapping[str, str], *, per_broker: bool
) -> None:
    try:
        dynamic.validate_broker(config, per_broker=per_broker)
    except RequirementFailed as error:
        raise _invalid_request(f"requirement failed: {error.sentence}") from error
    except ConfigError as error:
        raise _invalid_request(str(error)) from error


def _change_levels(
    name: str, levels: Callable[[], list[Alteration]], broker_id: int, validate_only: bool
) -> None:
    _check_broker_id(name, broker_id, "node id. Expected {}")
    alterations = levels()
    check_levels(alterations)
    if not validate_only:
        set_levels(alterations)


def _check_broker_id(name: str, broker_id: int, wording: str) -> None:
    if not is_whole_number(name):
        raise _invalid_request(f"Node id must be an integer, but it is: {name}")
    if int(name) != broker_id:
        expected = wording.format(broker_id)
        raise _invalid_request(f"Unexpected {expected}, but received {name}")


def _invalid_request(problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, problem)
