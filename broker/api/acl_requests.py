"""ACLs of requests and responses, as the three ACL APIs share them."""

from typing import Final, Protocol

from broker.net.connection import CloseConnection
from broker.security.acls import (
    AccessControlEntryFilter,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)

NO_AUTHORIZER: Final = "No Authorizer is configured."

_UNKNOWN: Final = 0
"""The number of the UNKNOWN element of every enumeration of ACLs."""


def check_known(*elements: int) -> None:
    """CloseConnection if an element is UNKNOWN: Kafka treats such a request as malformed."""
    if _UNKNOWN in elements:
        raise CloseConnection("ACL request contains UNKNOWN elements")


class AclFilter(Protocol):
    """A filter of DescribeAcls or DeleteAcls."""

    @property
    def resource_type_filter(self) -> int:
        """A `ResourceType`."""
        ...

    @property
    def resource_name_filter(self) -> str | None:
        """None: any name."""
        ...

    @property
    def pattern_type_filter(self) -> int:
        """A `PatternType`."""
        ...

    @property
    def principal_filter(self) -> str | None:
        """None: any principal."""
        ...

    @property
    def host_filter(self) -> str | None:
        """None: any host."""
        ...

    @property
    def operation(self) -> int:
        """An `AclOperation`."""
        ...

    @property
    def permission_type(self) -> int:
        """An `AclPermissionType`."""
        ...


def check_filter(asked: AclFilter) -> None:
    """CloseConnection if an element is UNKNOWN."""
    check_known(
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.operation,
        asked.permission_type,
    )


def binding_filter(asked: AclFilter) -> AclBindingFilter:
    """The filter of a request."""
    return AclBindingFilter(
        ResourcePatternFilter(
            ResourceType(asked.resource_type_filter),
            asked.resource_name_filter,
            PatternType(asked.pattern_type_filter),
        ),
        AccessControlEntryFilter(
            asked.principal_filter,
            asked.host_filter,
            AclOperation(asked.operation),
            AclPermissionType(asked.permission_type),
        ),
    )
