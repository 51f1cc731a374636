"""SCRAM credentials, through the brokers."""

import secrets
from collections.abc import Sequence

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from broker.security.scram import ScramMechanism, salted_password
from kctl.admin.broker_queries import change_by_controller
from kctl.model.outcomes import Outcome, outcome
from kctl.model.users import MECHANISM_CODES, Credential, NewCredential

_SALT_BYTES = 32
_NAMES = {code: mechanism.value for mechanism, code in MECHANISM_CODES.items()}


async def list_credentials(client: Client, users: Sequence[str] = ()) -> list[Credential]:
    """The credentials of these users, of all users if none are named.

    A user without credentials is missing from the result.
    """
    names = [UserName(name=name) for name in users] or None
    response = await client.send(DescribeUserScramCredentialsRequest(users=names))
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code), response.error_message or "")
    found = []
    for result in response.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            message = result.error_message or f"user {result.user}"
            raise ApiError(ErrorCode(result.error_code), message)
        found += [
            Credential(result.user, _NAMES.get(info.mechanism, "UNKNOWN"), info.iterations)
            for info in result.credential_infos
        ]
    return found


def new_credential(
    user: str, mechanism: ScramMechanism, password: str, iterations: int
) -> NewCredential:
    """Salt a password: the broker never gets the password itself."""
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = salted_password(mechanism.hash_name, password, salt, iterations)
    return NewCredential(user, mechanism, iterations, salt, salted)


async def alter_credentials(
    client: Client,
    upserted: Sequence[NewCredential] = (),
    deleted: Sequence[Credential] = (),
) -> list[Outcome]:
    """Set and delete credentials; the outcome of each user."""
    request = AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(
                name=one.user, mechanism=MECHANISM_CODES[ScramMechanism(one.mechanism)]
            )
            for one in deleted
        ],
        upsertions=[
            ScramCredentialUpsertion(
                name=one.user,
                mechanism=MECHANISM_CODES[one.mechanism],
                iterations=one.iterations,
                salt=one.salt,
                salted_password=one.salted_password,
            )
            for one in upserted
        ],
    )
    response = await change_by_controller(client, request)
    return [outcome(one.user, one.error_code, one.error_message) for one in response.results]
