"""Handle AlterUserScramCredentials (KIP-554); controller only.

Deliberately missing: nothing.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from broker.api.authorization import authorize_cluster
from broker.api.context import RequestContext
from broker.api.scram_credentials import MECHANISMS, credential_text, node_of
from broker.errors import ApiError, ErrorCode
from broker.metadata.client_configs import ClientConfigStore
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from broker.security.acls import AclOperation
from broker.security.scram import MIN_ITERATIONS

_MAX_ITERATIONS: Final = 16384

Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


async def handle(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """Alter one user after the other, all credentials of a user or none of them."""
    context.services.controller.check_active()
    authorize_cluster(context, AclOperation.ALTER)
    alterations: dict[str, list[Alteration]] = {}
    for alteration in _alterations(request):
        alterations.setdefault(alteration.name, []).append(alteration)
    store = context.services.client_configs
    return AlterUserScramCredentialsResponse(
        results=[await _result(user, asked, store) for user, asked in alterations.items()]
    )


def _alterations(request: AlterUserScramCredentialsRequest) -> Iterator[Alteration]:
    """Deletions first, as Kafka applies them."""
    yield from request.deletions
    yield from request.upsertions


async def _result(
    user: str, alterations: list[Alteration], store: ClientConfigStore
) -> AlterUserScramCredentialsResult:
    try:
        for alteration in reversed(alterations):  # the last problem is the one that Kafka reports
            _check(alteration)
        if max(Counter(alteration.mechanism for alteration in alterations).values()) > 1:
            problem = "A user credential cannot be altered twice in the same request"
            raise ApiError(ErrorCode.DUPLICATE_RESOURCE, problem)
        await _alter(user, alterations, store)
    except ApiError as error:
        return AlterUserScramCredentialsResult(
            user=user, error_code=error.code, error_message=error.message
        )
    return AlterUserScramCredentialsResult(user=user, error_message="")


def _check(alteration: Alteration) -> None:
    if not alteration.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if alteration.mechanism not in MECHANISMS:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(alteration, ScramCredentialUpsertion):
        if alteration.iterations < MIN_ITERATIONS:
            raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if alteration.iterations > _MAX_ITERATIONS:
            raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


async def _alter(user: str, alterations: list[Alteration], store: ClientConfigStore) -> None:
    node = node_of(user)
    async with store.changing:
        config = await store.read(node)
        for alteration in alterations:
            mechanism = MECHANISMS[alteration.mechanism]
            if isinstance(alteration, ScramCredentialUpsertion):
                config[mechanism] = credential_text(
                    mechanism, alteration.salt, alteration.salted_password, alteration.iterations
                )
            elif config.pop(mechanism, None) is None:
                problem = "Attempt to delete a user credential that does not exist"
                raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, problem)
        await store.write(node, config)


def error_response(
    request: AlterUserScramCredentialsRequest, code: ErrorCode
) -> AlterUserScramCredentialsResponse:
    """The error on every user; there is no other place for it."""
    users = dict.fromkeys(alteration.name for alteration in _alterations(request))
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=None)
            for user in users
        ]
    )
