"""Handle DescribeConfigs (KIP-133): configs of topics and this broker, levels of its loggers.

Versions:
    v1 sources and synonyms of values (KIP-226)
    v2 clients wait out a throttle time themselves, after the response (KIP-219)
    v3 types and documentation (KIP-569)
    v4 flexible

Deliberately missing: configs of client metrics and of groups, which only KRaft clusters have.
"""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Final

from broker.api.authorization import MESSAGES, is_authorized, is_authorized_on_cluster
from broker.api.config_changes import ResourceType
from broker.api.context import RequestContext, Services
from broker.api.duplicates import remove_duplicates, removing_duplicates
from broker.api.slices import SMALL, in_slices
from broker.config.description import (
    ConfigSource,
    Description,
    Synonym,
    describe_broker,
    describe_cluster_defaults,
    describe_topic,
)
from broker.config.loggers import logger_levels
from broker.config.values import ConfigType, is_whole_number
from broker.errors import ApiError, ErrorCode
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from broker.security.acls import AclOperation
from broker.security.acls import ResourceType as AclResourceType
from broker.tasks import run_in_slices
from broker.topic_names import name_problem

_MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
"""Kafka's message for an invalid request without a more specific one."""


def handle(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse | Awaitable[DescribeConfigsResponse]:
    """Describe each resource; one of an unknown type makes the whole request invalid."""
    if any(r.resource_type not in ResourceType.__members__.values() for r in request.resources):
        return error_response(request, ErrorCode.INVALID_REQUEST)
    describer = _Describer(request, context)
    if len(request.resources) > SMALL:
        return _describe_many(describer, request)
    remove_duplicates(request)
    return DescribeConfigsResponse(results=list(map(describer.result, request.resources)))


async def _describe_many(
    describer: "_Describer", request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    await run_in_slices(removing_duplicates(request))
    return DescribeConfigsResponse(results=await in_slices(describer.result, request.resources))


class _Describer:
    """Describes the resources of one request.

    Descriptions are kept for the request: one of a broker takes milliseconds, and nothing keeps a
    client from requesting the same one thousands of times.
    """

    def __init__(self, request: DescribeConfigsRequest, context: RequestContext) -> None:
        self._request = request
        self._context = context
        self._services = context.services
        self._configs: dict[tuple[int, str], list[DescribeConfigsResourceResult]] = {}

    def result(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        """The configs of a resource, or the error of a resource that cannot be described."""
        try:
            _authorize(resource, self._context)
            configs = self._all_configs(resource)
        except ApiError as error:
            return _failed(resource, error.code, error.message)
        if resource.configuration_keys:
            wanted = set(resource.configuration_keys)
            configs = [config for config in configs if config.name in wanted]
        return DescribeConfigsResult(
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )

    def _all_configs(
        self, resource: DescribeConfigsResource
    ) -> list[DescribeConfigsResourceResult]:
        key = resource.resource_type, resource.resource_name
        configs = self._configs.get(key)
        if configs is None:
            descriptions = _descriptions(resource, self._services)
            configs = [_config(self._request, description) for description in descriptions]
            self._configs[key] = configs
        return configs


def _authorize(resource: DescribeConfigsResource, context: RequestContext) -> None:
    if resource.resource_type != ResourceType.TOPIC:
        if not is_authorized_on_cluster(context, AclOperation.DESCRIBE_CONFIGS):
            raise _denied(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    elif not is_authorized(
        context, AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, resource.resource_name
    ):
        raise _denied(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _denied(code: ErrorCode) -> ApiError:
    return ApiError(code, MESSAGES[code])


def _descriptions(resource: DescribeConfigsResource, services: Services) -> Iterable[Description]:
    name, dynamic = resource.resource_name, services.dynamic
    if resource.resource_type == ResourceType.TOPIC:
        _check_topic(name, services)
        return describe_topic(dynamic, name)
    if resource.resource_type == ResourceType.BROKER:
        if not name:
            return describe_cluster_defaults(dynamic)
        _check_broker_id(name, dynamic.broker_id, " or empty string,")
        return describe_broker(dynamic)
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_broker_id(name, dynamic.broker_id, "")
        return [_logger(logger, level) for logger, level in logger_levels().items()]
    raise ApiError(ErrorCode.INVALID_REQUEST, _client_metrics_problem(name))


def _check_topic(name: str, services: Services) -> None:
    if problem := name_problem(name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name not in services.metadata.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _check_broker_id(name: str, broker_id: int, alternative: str) -> None:
    if not is_whole_number(name):
        problem = f"Broker id must be an integer, but it is: {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    if int(name) != broker_id:
        problem = f"Unexpected broker id, expected {broker_id}{alternative} but received {name}"
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)


def _client_metrics_problem(name: str) -> str:
    if not name:
        return "Client metrics subscription name must not be empty"
    return "Config type client-metrics is only supported on KRaft clusters"


def _logger(name: str, level: str) -> Description:
    source = Synonym(name, level, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG)
    return Description(name, level, ConfigType.UNKNOWN, [source], documentation="")


def _config(
    request: DescribeConfigsRequest, description: Description
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=description.name,
        value=description.value,
        read_only=description.read_only,
        config_source=description.source,
        is_sensitive=description.is_sensitive,
        synonyms=_synonyms(description.synonyms) if request.include_synonyms else [],
        config_type=description.type,
        documentation=description.documentation if request.include_documentation else None,
    )


def _synonyms(synonyms: Sequence[Synonym]) -> list[DescribeConfigsSynonym]:
    """Synonyms without the one of a logger's level, which Kafka does not list."""
    return [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in synonyms
        if synonym.source is not ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    ]


def _failed(
    resource: DescribeConfigsResource, code: ErrorCode, message: str
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        # Kafka sends no message with this code.
        error_message="" if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(request: DescribeConfigsRequest, code: ErrorCode) -> DescribeConfigsResponse:
    """The error on every resource; there is no other place for it."""
    message = _MALFORMED if code is ErrorCode.INVALID_REQUEST else code.name
    return DescribeConfigsResponse(
        results=[_failed(resource, code, message) for resource in request.resources]
    )
