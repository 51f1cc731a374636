"""Security of a development cluster: TLS, SCRAM and ACLs, with everything they need generated.

<state>/security/authority.pem       the certificate that clients trust
                 broker.pem          certificate and key of the brokers, mode 0600
                 broker.properties   settings of the brokers, with their password, mode 0600
                 client.properties   settings of clients, with the admin's password, mode 0600

Brokers log in to each other as User:broker. User:broker and User:admin are super users.
"""

import asyncio
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from broker.java_properties import parse_properties
from broker.net.authentication import Security
from broker.security.scram import MIN_ITERATIONS, ScramMechanism
from kctl.admin.metadata_place import Place
from kctl.admin.user_znodes import write_credentials
from kctl.admin.users import new_credential
from kctl.cli.client_properties import read_client_properties
from kctl.cli.contexts import Context, Contexts, config_path, read_contexts, write_contexts
from kctl.cli.errors import CliError
from kctl.cli.private_files import write_private
from kctl.cli.security.clients import client_security
from kctl.cli.security.jaas import parse_jaas
from kctl.cli.security.settings import read_security

ADMIN, BROKER = "admin", "broker"
MECHANISM = ScramMechanism.SHA_512
CONTEXT = "dev-secure"
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_LISTENER_JAAS = f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config"


@dataclass(frozen=True)
class DevSecurity:
    """The generated files of one development cluster."""

    directory: Path

    @property
    def exists(self) -> bool:
        """Whether they were generated."""
        return self.client_properties.exists()

    @property
    def client_properties(self) -> Path:
        """Settings of clients, for kctl and for Java."""
        return self.directory / "client.properties"

    @property
    def _broker_properties(self) -> Path:
        return self.directory / "broker.properties"

    def generate(self) -> None:
        """Generate certificates and passwords; those of an earlier start are kept."""
        if self.exists:
            return
        from kctl.dev.certificates import new_certificates  # imported here: it takes 0.1 s

        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        certificates = new_certificates()
        trusted, own = self.directory / "authority.pem", self.directory / "broker.pem"
        trusted.write_text(certificates.authority)
        write_private(own, certificates.broker)
        passwords = {user: secrets.token_urlsafe(24) for user in (ADMIN, BROKER)}
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)}
        broker = {
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": MECHANISM.value,
            "sasl.mechanism.inter.broker.protocol": MECHANISM.value,
            _LISTENER_JAAS: _jaas(BROKER, passwords[BROKER]),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own),
            **trust,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{ADMIN};User:{BROKER}",
            "delegation.token.secret.key": secrets.token_urlsafe(24),
        }
        client = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM.value,
            "sasl.jaas.config": _jaas(ADMIN, passwords[ADMIN]),
            **trust,
        }
        write_private(self._broker_properties, _text(broker))
        write_private(self.client_properties, _text(client))

    def broker_settings(self) -> dict[str, str]:
        """The settings of every broker."""
        return read_client_properties(self._broker_properties)

    def create_users(self, place: Place) -> None:
        """Store the credentials of broker and admin, before the brokers start."""
        logins = [
            (BROKER, self.broker_settings()[_LISTENER_JAAS]),
            (ADMIN, read_client_properties(self.client_properties)["sasl.jaas.config"]),
        ]
        credentials = [
            new_credential(user, MECHANISM, _password(jaas), MIN_ITERATIONS)
            for user, jaas in logins
        ]
        asyncio.run(write_credentials(place, credentials))

    def for_client(self) -> Security:
        """How the admin connects."""
        properties = read_client_properties(self.client_properties)
        return client_security(read_security(properties, lambda _: None))

    def write_context(self, addresses: str) -> None:
        """Save the context; it becomes the current one if no context is current."""
        contexts = read_contexts(config_path())
        context = Context(addresses, str(self.client_properties))
        named = {**contexts.named, CONTEXT: context}
        write_contexts(config_path(), Contexts(contexts.current or CONTEXT, named))

    def delete(self) -> None:
        """Delete the files, and the context that names them."""
        if not self.exists:
            return
        contexts = read_contexts(config_path())
        own = contexts.named.get(CONTEXT)
        if own and own.command_config == str(self.client_properties):
            left = {name: one for name, one in contexts.named.items() if name != CONTEXT}
            current = None if contexts.current == CONTEXT else contexts.current
            write_contexts(config_path(), Contexts(current, left))
        shutil.rmtree(self.directory)


def dev_security(state: Path) -> DevSecurity:
    """The security of the cluster in this directory, whether it has any or not."""
    return DevSecurity(state / "security")


def _jaas(user: str, password: str) -> str:
    return f'{_MODULE} required username="{user}" password="{password}";'


def _password(jaas: str) -> str:
    return parse_jaas(jaas).options["password"]


def _text(settings: dict[str, str]) -> str:
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    if parse_properties(text) != settings:
        raise CliError(
            "the path of the directory cannot be written to a properties file", "use another --dir"
        )
    return text
