"""`sasl.jaas.config` of clients: the same syntax as on brokers."""

from broker.security import jaas
from broker.security.jaas import JaasConfig
from kctl.cli.errors import CliError, ExitStatus


def parse_jaas(text: str) -> JaasConfig:
    """Parse the setting; CliError, which does not quote it, if it is malformed."""
    try:
        return jaas.parse_jaas(text)
    except jaas.JaasError as error:
        raise CliError(
            "sasl.jaas.config is malformed",
            f'{error}; for example: MODULE required username="…" password="…";',
            ExitStatus.USAGE,
        ) from None
