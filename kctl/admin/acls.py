"""ACLs of a cluster: read, create and delete them."""

from collections.abc import Sequence

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from broker.protocol.messages.describe_acls import DescribeAclsRequest
from broker.security.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from kctl.model.acls import Acl, AclFilter, ResourcePattern, filter_of
from kctl.model.outcomes import Outcome, outcome


async def describe_acls(client: Client, wanted: AclFilter) -> list[Acl]:
    """The ACLs that match a filter, in the order of the response; ApiError if refused."""
    response = await client.send(
        DescribeAclsRequest(
            resource_type_filter=wanted.type,
            resource_name_filter=wanted.name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )
    )
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code), response.error_message or "")
    return [
        Acl(
            ResourcePattern(
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
            ),
            acl.principal,
            acl.host,
            AclOperation(acl.operation),
            AclPermissionType(acl.permission_type),
        )
        for resource in response.resources
        for acl in resource.acls
    ]


async def find_acls(client: Client, filters: Sequence[AclFilter]) -> list[Acl]:
    """The ACLs that match any of the filters, each once."""
    found: dict[Acl, None] = {}
    for wanted in filters:
        found |= dict.fromkeys(await describe_acls(client, wanted))
    return list(found)


async def create_acls(client: Client, acls: Sequence[Acl]) -> list[Outcome]:
    """Create ACLs; an existing one is left as it is. The outcome of each."""
    creations = [
        AclCreation(
            resource_type=acl.pattern.type,
            resource_name=acl.pattern.name,
            resource_pattern_type=acl.pattern.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in acls
    ]
    response = await client.send(CreateAclsRequest(creations=creations))
    return [
        outcome(str(acl), result.error_code, result.error_message)
        for acl, result in zip(acls, response.results, strict=True)
    ]


async def delete_acls(client: Client, acls: Sequence[Acl]) -> list[Outcome]:
    """Delete exactly these ACLs; the outcome of each."""
    response = await client.send(
        DeleteAclsRequest(filters=[_exactly(filter_of(acl)) for acl in acls])
    )
    outcomes = []
    for acl, result in zip(acls, response.filter_results, strict=True):
        errors = [(one.error_code, one.error_message) for one in result.matching_acls]
        failed = [error for error in errors if error[0]]
        code, message = (
            (result.error_code, result.error_message)
            if result.error_code
            else (failed[0] if failed else (0, None))
        )
        outcomes.append(outcome(str(acl), code, message))
    return outcomes


def _exactly(wanted: AclFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=wanted.type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
