"""One secured broker for all tests here, with a listener for each kind of security."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.broker import RunningBroker, running_broker
from tests.support.secured import Certificates, jaas, librdkafka, login

CANARY = "canary-password"
"""Part of every secret: no log and no description contains it."""
SECURED_VALIDATOR = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
)
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
PROTOCOLS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
    "SIGNED": "SASL_PLAINTEXT",
    "BRIEF": "SASL_PLAINTEXT",
    "OPEN": "PLAINTEXT",
}


def password_of(user: str) -> str:
    return f"{user}-{CANARY}"


@dataclass(frozen=True)
class SecuredBroker:
    """The broker, the addresses of its listeners, and what clients need."""

    broker: RunningBroker
    certificates: Certificates
    provider_key: ec.EllipticCurvePrivateKey
    addresses: dict[str, str]

    def client(self, listener: str, mechanism: str = "", user: str = "") -> dict[str, Any]:
        """Settings of librdkafka."""
        who = login(mechanism, user, password_of(user)) if mechanism else {}
        protocol = PROTOCOLS[listener]
        return librdkafka(self.addresses[listener], protocol, self.certificates, **who)

    def signed_token(self, **claims: object) -> str:
        """A token of the OAuth provider."""
        return jwt.encode(dict(claims), self.provider_key, "ES256", headers={"kid": "key-1"})


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    directory = tmp_path_factory.mktemp("secured")
    certificates = Certificates.make(directory)
    key = ec.generate_private_key(ec.SECP256R1())
    jwks = directory / "jwks.json"
    jwks.write_text(jwks_of(key, "key-1"))
    with running_broker(directory, **_settings(certificates, jwks)) as broker:
        line = re.search(r"started broker.*", broker.output())
        assert line
        addresses = dict(re.findall(r"(\w+)://([\w.]+:\d+)", line[0]))
        made = SecuredBroker(broker, certificates, key, addresses)
        _create_users(made, "bob", "carol, the=2nd")
        yield made


def _settings(certificates: Certificates, jwks: Path) -> dict[str, object]:
    users = {f"user_{name}": password_of(name) for name in ("alice", "admin")}
    plain = jaas("PLAIN", username="admin", password=password_of("admin"), **users)
    unsecured = jaas("OAUTHBEARER", unsecuredValidatorRequiredScope="kafka")
    signed = "listener.name.signed."
    return certificates.settings() | {
        "listeners": ",".join(f"{name}://localhost:0" for name in PROTOCOLS),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in PROTOCOLS.items()),
        "inter.broker.listener.name": "BOTH",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": MECHANISMS,
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/U,DEFAULT",
        "listener.name.mtls.ssl.client.auth": "required",
        **{f"listener.name.{name}.plain.sasl.jaas.config": plain for name in ("sasl", "both")},
        "listener.name.brief.plain.sasl.jaas.config": plain,
        "listener.name.brief.plain.connections.max.reauth.ms": 1500,
        "listener.name.brief.sasl.enabled.mechanisms": "PLAIN",
        **{
            f"listener.name.{name}.oauthbearer.sasl.jaas.config": unsecured
            for name in ("sasl", "both")
        },
        f"{signed}sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{signed}oauthbearer.sasl.server.callback.handler.class": SECURED_VALIDATOR,
        f"{signed}sasl.oauthbearer.jwks.endpoint.url": f"file://{jwks}",
        f"{signed}sasl.oauthbearer.expected.audience": "kafka",
        f"{signed}sasl.oauthbearer.expected.issuer": "https://issuer.example",
        "delegation.token.secret.key": f"secret-{CANARY}",
        "password.encoder.secret": f"encoder-{CANARY}",
        "offsets.topic.num.partitions": 2,
        "group.initial.rebalance.delay.ms": 0,
        "sasl.server.max.receive.size": 100_000,
    }


def jwks_of(key: ec.EllipticCurvePrivateKey, key_id: str) -> str:
    """The document of an OAuth provider with one key."""
    public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return json.dumps({"keys": [public | {"kid": key_id, "use": "sig"}]})


def _create_users(broker: SecuredBroker, *names: str) -> None:
    admin = AdminClient(broker.client("BOTH", "PLAIN", "admin"))
    wanted: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(
            name, ScramCredentialInfo(mechanism, 4096), password_of(name).encode()
        )
        for name in names
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    for future in admin.alter_user_scram_credentials(wanted).values():
        future.result(20)
