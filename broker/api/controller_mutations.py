"""The quota for creating and deleting partitions (KIP-599), as handlers use it."""

from broker.api.context import RequestContext
from broker.quota.client_quota_manager import ControllerMutationQuota


def mutation_quota(context: RequestContext, *, strict_since: int) -> ControllerMutationQuota | None:
    """The quota of a request; None while there are no quotas.

    From version `strict_since` on, clients know THROTTLING_QUOTA_EXCEEDED.
    """
    if context.usage is None:
        return None
    return context.usage.mutation_quota(is_strict=context.api_version >= strict_since)


def permissive_mutation_quota(context: RequestContext) -> ControllerMutationQuota | None:
    """The quota of a request that creates topics on the side; it is never refused."""
    return None if context.usage is None else context.usage.mutation_quota(is_strict=False)
