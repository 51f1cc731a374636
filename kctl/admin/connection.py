"""The connection of one command run to its cluster; failures become CliError.

A run has one client and one event loop, also while it polls: `ask` opens them on first use and the
session closes them at the end of the run.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from broker.errors import ApiError, ErrorCode
from broker.net.authentication import PLAINTEXT
from broker.net.client import Client, Cluster
from broker.net.failures import SecurityFailed, SecurityProblem
from broker.protocol.errors import EncodeError
from kctl import __version__
from kctl.admin.broker_queries import SCOPE, BrokerUnavailable, QueryScope
from kctl.cli.errors import CliError, ExitStatus, usage_error
from kctl.cli.guards import check_cluster_id
from kctl.cli.options import DEFAULT_TIMEOUT_S, Session
from kctl.views.outcomes import HINTS

Answer = TypeVar("Answer")
Query = Callable[[Client], Awaitable[Answer]]

CLIENT_ID = f"kctl/{__version__}"
"""The client id in the brokers' request logs and quotas."""

BROKER_TIMEOUT_S = 5.0
"""For each broker of a query to several, unless a timeout was given: one hung broker must not
hold up a command for the 30 s that a single request may take."""

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
    "DescribeAcls": "0.11",
    "CreateAcls": "0.11",
    "DeleteAcls": "0.11",
    "CreateDelegationToken": "1.1",
    "RenewDelegationToken": "1.1",
    "ExpireDelegationToken": "1.1",
    "DescribeDelegationToken": "1.1",
    "DescribeUserScramCredentials": "2.7",
    "AlterUserScramCredentials": "2.7",
    "DescribeClientQuotas": "2.6",
    "AlterClientQuotas": "2.6",
    "DescribeCluster": "2.8",
    "DescribeProducers": "2.8",
    "DescribeQuorum": "2.8",
    "UnregisterBroker": "2.8",
    "UpdateFeatures": "2.7",
    "ListClientMetricsResources": "3.7",
    "ConsumerGroupDescribe": "3.7",
    "DescribeShareGroupOffsets": "4.1",
    "ShareGroupDescribe": "4.1",
    "DescribeTransactions": "3.0",
    "ListTransactions": "3.0",
}
"""The first Kafka version with an API, for APIs added after 0.10.0."""


SECURITY_HINTS = {
    SecurityProblem.NOT_TLS: "use the port of a TLS listener, or security.protocol=PLAINTEXT",
    SecurityProblem.WANTS_TLS: "set security.protocol=SSL or SASL_SSL in client.properties",
    SecurityProblem.UNTRUSTED_CERTIFICATE: (
        "set ssl.truststore.location to a PEM file with the certificate of its authority"
    ),
    SecurityProblem.HOSTNAME_MISMATCH: (
        "connect to a name in the certificate; an empty "
        "ssl.endpoint.identification.algorithm disables the check"
    ),
    SecurityProblem.CERTIFICATE_WANTED: (
        "set ssl.keystore.location to a PEM file with a certificate and its private key"
    ),
    SecurityProblem.TLS_REFUSED: "client and broker have no TLS version or cipher in common",
    SecurityProblem.NO_SASL: "use security.protocol=PLAINTEXT or SSL, or a SASL listener",
    SecurityProblem.MECHANISM_NOT_ENABLED: "set sasl.mechanism to one that the broker offers",
    SecurityProblem.BAD_CREDENTIALS: "check the user name, the password and the mechanism",
}
"""What to do if a secure connection could not be established."""


class ClusterConnection:
    """One client and one event loop for a whole command run.

    Calls from several threads take turns.
    """

    def __init__(self, session: Session) -> None:
        self._client = _client(session)
        self._runner = asyncio.Runner()
        self._lock = threading.Lock()

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster, once a broker has told it."""
        return self._client.cluster.cluster_id

    def run(self, query: Query[Answer], scope: QueryScope, timeout_s: float | None) -> Answer:
        """The result of `query`; TimeoutError if it takes longer than `timeout_s`."""
        answers: list[Answer] = []

        async def keep() -> None:
            answers.append(await self._run(query, scope, timeout_s))

        with self._lock:
            # Not the result of the task: Runner looks up a signal handler that refers to the task,
            # and the failing look-up formats it with its whole result.
            self._runner.run(keep())
        return answers[0]

    def close(self) -> None:
        """Close all connections and the event loop."""
        with self._lock, self._runner:
            self._runner.run(self._client.close())

    async def _run(
        self, query: Query[Answer], scope: QueryScope, timeout_s: float | None
    ) -> Answer:
        client = self._client
        SCOPE.set(scope)
        # Connections closed by a broker since the last query are noticed only while the loop runs.
        await asyncio.sleep(0)
        # Leaders and controller may have changed since then; nodes are kept as addresses.
        client.cluster = Cluster(client.cluster.cluster_id, -1, client.cluster.nodes)
        try:
            async with asyncio.timeout(timeout_s):
                return await query(client)
        except TimeoutError:
            await client.close()  # a later query must not wait on the same silent connection
            raise
        finally:
            await _cancel_other_tasks()


async def _cancel_other_tasks() -> None:
    """Cancel what a failed query left behind, as `asyncio.run` does at its end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def ask(
    session: Session, query: Query[Answer], *, partial: bool = False, check: str = ""
) -> Answer:
    """Run `query` on the client of this run; CliError if it fails.

    `check` is for queries that change the cluster: the command that shows whether the change was
    made. After a timeout the error says that it may have been.

    With `partial`, brokers that do not answer are left out of the result and recorded in
    `session.unanswered`; see `broker_queries`. Then there is no timeout for the whole query, only
    one for each request and each broker.
    """
    scope = QueryScope(_broker_timeout_s(session, partial=partial), is_partial=partial)
    try:
        connection = _connection(session)
        if session.active_context[1].cluster_id and not connection.cluster_id:
            connection.run(lambda client: client.refresh_metadata(), scope, session.timeout)
            check_cluster_id(session, connection.cluster_id)
        return connection.run(query, scope, None if partial else session.timeout)
    except BrokerUnavailable as error:
        hint = "check that it is running; --timeout SECONDS waits longer"
        raise _timed_out(str(error.failure), hint, check) from error
    except TimeoutError as error:
        raise _timed_out(*_silent(session, scope), check) from error
    except SecurityFailed as error:
        raise CliError(str(error), SECURITY_HINTS[error.problem]) from error
    except OSError as error:
        raise CliError(
            f"cannot reach the cluster: {error}",
            "check the address, and that the broker is running",
        ) from error
    except ApiError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise _too_old(error) from error
        hint = HINTS.get(error.code, "")
        raise CliError(f"the cluster refused: {error} ({error.code.name})", hint) from error
    except EncodeError as error:
        raise _not_encodable(error) from error
    finally:
        session.unanswered |= {b: str(failure) for b, failure in scope.failures.items()}


def _silent(session: Session, scope: QueryScope) -> tuple[str, str]:
    """Message and hint after the timeout of a whole query: who did not answer."""
    if scope.waiting:
        hint = "check that it is running; --timeout SECONDS waits longer"
        return str(next(iter(scope.waiting.values()))()), hint
    hint = "check that this is a Kafka listener; --timeout SECONDS waits longer"
    return f"no answer from {session.bootstrap_servers()} within {session.timeout:g} s", hint


def _timed_out(message: str, hint: str, check: str) -> CliError:
    if check:
        message, hint = f"{message}: the change may have been made", f"{check} shows whether it was"
    return CliError(message, hint, ExitStatus.TIMED_OUT)


def _broker_timeout_s(session: Session, *, partial: bool) -> float:
    """The timeout of one broker in a query to several."""
    if session.timeout != DEFAULT_TIMEOUT_S:
        # Less than that of the whole query, so that the message names the broker.
        return session.timeout if partial else session.timeout * 0.9
    return BROKER_TIMEOUT_S if partial else 2 * BROKER_TIMEOUT_S


def _not_encodable(error: EncodeError) -> CliError:
    """A value of the command line or of a file that Kafka's protocol cannot carry."""
    if isinstance(error.__cause__, UnicodeEncodeError):
        return usage_error("a name is not valid UTF-8", f"names in Kafka are UTF-8 ({error})")
    return usage_error(f"a value is out of range: {error}", "check the numbers")


def _connection(session: Session) -> ClusterConnection:
    if not isinstance(session.connection, ClusterConnection):
        session.connection = ClusterConnection(session)
    return session.connection


def _too_old(error: ApiError) -> CliError:
    """Names the Kafka version that has the API; the error's text begins with the API's name."""
    api = str(error).split()[0]
    # Every broker serves some version of it, controllers of KRaft none.
    if api == "Metadata" and str(error).endswith("does not serve it"):
        return CliError(
            "this is the listener of a KRaft controller, not of a broker",
            "use the address of a broker (-b); kctl quorum replication shows the controllers",
        )
    since = KAFKA_WITH.get(api, "")
    hint = (
        f"this needs Kafka {since} or newer"
        if since
        else "kctl api-versions lists what the brokers support"
    )
    return CliError(f"the cluster is too old for this: {error}", hint)


def _client(session: Session) -> Client:
    servers = session.bootstrap_servers()
    security = PLAINTEXT
    if session.security is not None:
        from kctl.cli.security.clients import client_security  # imported here: few runs need it

        security = client_security(session.security)
    try:
        return Client(
            servers,
            client_id=CLIENT_ID,
            request_timeout_s=session.timeout,
            security=security,
        )
    except ValueError as error:
        raise CliError(str(error), "specify it as -b HOST:PORT", ExitStatus.USAGE) from error
