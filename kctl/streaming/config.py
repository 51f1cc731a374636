"""Configuration of librdkafka clients, and their errors as CliError."""

import logging
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException

from kctl.admin.connection import CLIENT_ID, ask
from kctl.cli.confirmation import refuse_if_read_only
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session

Properties = dict[str, object]

logger = logging.getLogger("librdkafka")
logger.addHandler(
    logging.NullHandler()
)  # shown with -v; without a logger librdkafka writes to stderr itself

_FALSE = {"false", "f", "0"}
"""librdkafka's spellings, in lower case."""
_UNAUTHORIZED_HINT = "kctl acls explain USER OPERATION RESOURCE shows why"
_TIMEOUTS = {KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError._TRANSPORT}


def client_properties(session: Session, settings: Iterable[str] = ()) -> Properties:
    """Properties of every client; `settings` are the user's `KEY=VALUE`, which take precedence."""
    own: Properties = {
        "bootstrap.servers": session.bootstrap_servers(),
        "client.id": CLIENT_ID,
        "logger": logger,
    }
    return own | _security(session) | dict(map(_parse_setting, settings))


def refuse_commits_if_read_only(session: Session, properties: Properties) -> None:
    """CliError if a consumer with these properties commits offsets in a read-only context.

    `-X enable.auto.commit=true` makes librdkafka commit the offsets of assigned partitions too.
    """
    if str(properties.get("enable.auto.commit")).lower() not in _FALSE:
        refuse_if_read_only(session)


def _security(session: Session) -> Properties:
    if session.security is None:
        return {}
    from kctl.cli.security.clients import librdkafka_properties

    # librdkafka retries a wrong password; our own client fails at once with a clear message.
    ask(session, lambda client: client.refresh_metadata())
    return librdkafka_properties(session.security)


def _parse_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise CliError(f"{text!r} is not KEY=VALUE", "e.g. -X linger.ms=50", ExitStatus.USAGE)
    return key.strip(), value.strip()


def refused(error: KafkaException | KafkaError | ValueError, what: str) -> CliError:
    """A librdkafka error as a CliError; `what` names the failed action."""
    cause = error.args[0] if isinstance(error, KafkaException) else error
    if not isinstance(cause, KafkaError):
        return CliError(f"{what}: {cause}")
    if cause.code() == KafkaError._INVALID_ARG:
        return CliError(f"{what}: {cause.str()}", "see the -X settings", ExitStatus.USAGE)
    status = ExitStatus.TIMED_OUT if cause.code() in _TIMEOUTS else ExitStatus.FAILED
    hint = _UNAUTHORIZED_HINT if cause.name().endswith("_AUTHORIZATION_FAILED") else ""
    return CliError(f"{what}: {cause.str()} ({cause.name()})", hint, status)
