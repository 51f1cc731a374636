"""One question to a cluster: it is answered, or it fails in words."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from broker.errors import ApiError, ErrorCode
from broker.net.authentication import PLAINTEXT
from broker.net.client import Client
from broker.net.failures import SecurityFailed, SecurityProblem
from kctl import __version__
from kctl.errors import CliError, ExitStatus
from kctl.options import Session
from kctl.outcomes import HINTS

Answer = TypeVar("Answer")

CLIENT_ID = f"kctl/{__version__}"
"""What brokers log and count requests under."""

KAFKA_WITH = {
    "CreateTopics": "0.10.1",
    "DeleteTopics": "0.10.1",
    "CreatePartitions": "1.0",
    "DeleteRecords": "0.11",
    "DescribeConfigs": "0.11",
    "IncrementalAlterConfigs": "2.3",
    "DescribeLogDirs": "1.0",
    "AlterReplicaLogDirs": "1.0",
    "DeleteGroups": "1.1",
    "OffsetDelete": "2.4",
    "ElectLeaders": "2.2",
    "AlterPartitionReassignments": "2.4",
    "ListPartitionReassignments": "2.4",
    "DescribeClientQuotas": "2.6",
    "AlterClientQuotas": "2.6",
    "DescribeCluster": "2.8",
    "DescribeProducers": "2.8",
    "DescribeTransactions": "3.0",
    "ListTransactions": "3.0",
}
"""The first Kafka that serves an API, for those that came after the first releases."""


SECURITY_HINTS = {
    SecurityProblem.NOT_TLS: "name the port of a TLS listener, or use security.protocol=PLAINTEXT",
    SecurityProblem.WANTS_TLS: "set security.protocol=SSL or SASL_SSL in client.properties",
    SecurityProblem.UNTRUSTED_CERTIFICATE: (
        "ssl.truststore.location names a PEM file with the certificate of its authority"
    ),
    SecurityProblem.HOSTNAME_MISMATCH: (
        "connect to a name that is in the certificate; an empty "
        "ssl.endpoint.identification.algorithm turns the check off"
    ),
    SecurityProblem.CERTIFICATE_WANTED: (
        "ssl.keystore.location names a PEM file with a certificate and its private key"
    ),
    SecurityProblem.TLS_REFUSED: "the two sides have no TLS version or cipher in common",
    SecurityProblem.NO_SASL: "use security.protocol=PLAINTEXT or SSL, or name a SASL listener",
    SecurityProblem.MECHANISM_NOT_ENABLED: "set sasl.mechanism to one that it offers",
    SecurityProblem.BAD_CREDENTIALS: "check the user name, the password and the mechanism",
}
"""What to do where the connection could not be made safe."""


def ask(session: Session, question: Callable[[Client], Awaitable[Answer]]) -> Answer:
    """Run `question` on a client of the session's cluster; CliError if it cannot be answered."""
    try:
        return asyncio.run(_ask(_client(session), session.timeout, question))
    except TimeoutError as error:
        raise CliError(
            f"no answer from {session.bootstrap_servers()} within {session.timeout:g} s",
            "is this a Kafka listener? --timeout gives it longer",
            ExitStatus.TIMED_OUT,
        ) from error
    except SecurityFailed as error:
        raise CliError(str(error), SECURITY_HINTS[error.problem]) from error
    except OSError as error:
        raise CliError(
            f"cannot reach the cluster: {error}",
            "check the address, and whether the broker is running",
        ) from error
    except ApiError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise _too_old(error) from error
        hint = HINTS.get(error.code, "")
        raise CliError(f"the cluster refused: {error} ({error.code.name})", hint) from error


def _too_old(error: ApiError) -> CliError:
    """Which Kafka has what this cluster lacks; the error's text begins with the API's name."""
    since = KAFKA_WITH.get(str(error).split()[0], "")
    hint = f"Kafka {since} and newer have it" if since else "kctl api-versions shows what it has"
    return CliError(f"the cluster is too old for this: {error}", hint)


def _client(session: Session) -> Client:
    servers = session.bootstrap_servers()
    security = PLAINTEXT
    if session.security is not None:
        from kctl.security.clients import client_security  # few runs need it

        security = client_security(session.security)
    try:
        return Client(
            servers, client_id=CLIENT_ID, request_timeout_s=session.timeout, security=security
        )
    except ValueError as error:
        raise CliError(str(error), "give it as -b HOST:PORT", ExitStatus.USAGE) from error


async def _ask(
    client: Client, timeout_s: float, question: Callable[[Client], Awaitable[Answer]]
) -> Answer:
    async with client, asyncio.timeout(timeout_s):
        return await question(client)
