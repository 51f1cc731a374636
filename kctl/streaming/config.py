"""What librdkafka is told about the cluster, and its failures in kctl's words."""

import logging
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException

from kctl.admin.connection import CLIENT_ID, ask
from kctl.errors import CliError, ExitStatus
from kctl.options import Session

Properties = dict[str, object]

logger = logging.getLogger("librdkafka")
logger.addHandler(logging.NullHandler())  # heard with -v; else librdkafka writes to stderr itself

_TIMEOUTS = {KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError._TRANSPORT}


def client_properties(session: Session, settings: Iterable[str] = ()) -> Properties:
    """Properties every client needs; `settings` are the user's `KEY=VALUE`, which come last."""
    own: Properties = {
        "bootstrap.servers": session.bootstrap_servers(),
        "client.id": CLIENT_ID,
        "logger": logger,
    }
    return own | _security(session) | dict(map(_parse_setting, settings))


def _security(session: Session) -> Properties:
    if session.security is None:
        return {}
    from kctl.security.clients import librdkafka_properties

    # librdkafka tries a wrong password again and again; asked once, our own client says it plainly.
    ask(session, lambda client: client.refresh_metadata())
    return librdkafka_properties(session.security)


def _parse_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise CliError(f"{text!r} is not KEY=VALUE", "e.g. -X linger.ms=50", ExitStatus.USAGE)
    return key.strip(), value.strip()


def refused(error: KafkaException | KafkaError | ValueError, what: str) -> CliError:
    """A failure of librdkafka as one of ours; `what` was being done."""
    cause = error.args[0] if isinstance(error, KafkaException) else error
    if not isinstance(cause, KafkaError):
        return CliError(f"{what}: {cause}")
    if cause.code() == KafkaError._INVALID_ARG:
        return CliError(f"{what}: {cause.str()}", "see the -X settings", ExitStatus.USAGE)
    status = ExitStatus.TIMED_OUT if cause.code() in _TIMEOUTS else ExitStatus.FAILED
    return CliError(f"{what}: {cause.str()} ({cause.name()})", "", status)
