"""Client quotas: read and change them."""

from collections.abc import Mapping, Sequence

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from broker.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from kctl.model.outcomes import Outcome, outcome
from kctl.model.quotas import EntityPart, PartType, QuotaEntity, QuotaEntry, entity_of

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2
"""Match types of a filter."""


async def describe_quotas(
    client: Client, parts: Sequence[EntityPart | PartType] = (), *, strict: bool = False
) -> list[QuotaEntry]:
    """The quotas of the entities that have all these parts, in the order of the response.

    A part type alone matches every entity that has such a part; `strict` leaves out entities that
    have other parts too.
    """
    request = DescribeClientQuotasRequest(components=[_component(p) for p in parts], strict=strict)
    response = await client.send(request)
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code), response.error_message or "")
    return [
        QuotaEntry(
            entity_of(
                *(EntityPart(PartType(one.entity_type), one.entity_name) for one in entry.entity)
            ),
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries or ()
    ]


def _component(part: EntityPart | PartType) -> ComponentData:
    if isinstance(part, PartType):
        return ComponentData(entity_type=part.value, match_type=_SPECIFIED, match=None)
    match_type = _DEFAULT if part.name is None else _EXACT
    return ComponentData(entity_type=part.type.value, match_type=match_type, match=part.name)


async def alter_quotas(
    client: Client,
    entity: QuotaEntity,
    changes: Mapping[str, float | None],
    *,
    validate_only: bool = False,
) -> Outcome:
    """Change quotas of one entity, all or none; None deletes one."""
    request = AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[
                    EntityData(entity_type=part.type.value, entity_name=part.name)
                    for part in entity.parts
                ],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in changes.items()
                ],
            )
        ],
        validate_only=validate_only,
    )
    (result,) = (await client.send(request)).entries
    return outcome(str(entity), result.error_code, result.error_message)
