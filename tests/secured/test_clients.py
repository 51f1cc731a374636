"""Real clients through every mechanism: records go in and come out."""

import asyncio
import ssl
import time
import uuid
import warnings
from contextlib import closing
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider

from broker.security.oauthbearer import unsecured_token
from tests.secured.conftest import PROTOCOLS, SecuredBroker, password_of
from tests.support.secured import round_trip

with warnings.catch_warnings():  # it reads its schemas with a deprecated function
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer

NUM = 50
LOGINS = [
    ("SSL", "", ""),
    ("MTLS", "", ""),
    ("SASL", "PLAIN", "alice"),
    ("SASL", "SCRAM-SHA-256", "bob"),
    ("SASL", "SCRAM-SHA-512", "carol, the=2nd"),
    ("SASL", "OAUTHBEARER", "dave"),
    ("BOTH", "PLAIN", "alice"),
    ("BOTH", "SCRAM-SHA-512", "bob"),
]


def topic_name(*parts: str) -> str:
    return "-".join([*(part for part in parts if part.isalnum()), uuid.uuid4().hex[:8]])


def token_for(user: str) -> str:
    now = time.time()
    return unsecured_token({"sub": user, "scope": "kafka", "iat": now - 1, "exp": now + 600})


@pytest.mark.parametrize(("listener", "mechanism", "user"), LOGINS)
def test_librdkafka(secured: SecuredBroker, listener: str, mechanism: str, user: str) -> None:
    settings = secured.client(listener, mechanism, user)
    if mechanism == "OAUTHBEARER":
        settings = secured.client(listener) | {
            "sasl.mechanisms": mechanism,
            "oauth_cb": lambda _: (token_for(user), time.time() + 600),
        }
    if listener == "MTLS":
        own = str(secured.certificates.client("erin"))
        settings |= {"ssl.certificate.location": own, "ssl.key.location": own}
    assert round_trip(settings, topic_name(listener, mechanism), NUM) == NUM


def test_librdkafka_with_a_signed_token(secured: SecuredBroker) -> None:
    def token(_: str) -> tuple[str, float]:
        now = time.time()
        claims = {"sub": "frank", "aud": "kafka", "iss": "https://issuer.example"}
        return secured.signed_token(**claims, iat=int(now), exp=int(now) + 600), now + 600

    settings = secured.client("SIGNED") | {"sasl.mechanisms": "OAUTHBEARER", "oauth_cb": token}
    assert round_trip(settings, topic_name("signed"), NUM) == NUM


class Token(AbstractTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return token_for("grace")


def context_of(secured: SecuredBroker, listener: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(secured.certificates.trusted))
    if listener == "MTLS":
        context.load_cert_chain(secured.certificates.client("heidi"))
    return context


def python_settings(
    secured: SecuredBroker, listener: str, mechanism: str, user: str
) -> dict[str, Any]:
    """Settings that aiokafka and kafka-python share."""
    found: dict[str, Any] = {
        "bootstrap_servers": secured.addresses[listener],
        "security_protocol": PROTOCOLS[listener],
    }
    if PROTOCOLS[listener].endswith("SSL"):
        found["ssl_context"] = context_of(secured, listener)
    if mechanism and mechanism != "OAUTHBEARER":
        found |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": password_of(user),
        }
    return found


@pytest.mark.parametrize(("listener", "mechanism", "user"), LOGINS)
def test_aiokafka(secured: SecuredBroker, listener: str, mechanism: str, user: str) -> None:
    settings = python_settings(secured, listener, mechanism, user)
    if mechanism == "OAUTHBEARER":
        settings |= {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": Token()}
    topic = topic_name(listener, mechanism)

    async def run() -> int:
        async with asyncio.timeout(50):
            async with AIOKafkaProducer(**settings, acks="all") as producer:
                for number in range(NUM):
                    await producer.send(topic, str(number).encode())
                await producer.flush()
            async with AIOKafkaConsumer(
                topic, **settings, auto_offset_reset="earliest", group_id=topic
            ) as consumer:
                count = 0
                while count < NUM:
                    found = await consumer.getmany(timeout_ms=1000)
                    count += sum(map(len, found.values()))
                return count

    assert asyncio.run(run()) == NUM


@pytest.mark.parametrize(
    ("listener", "mechanism", "user"), [login for login in LOGINS if login[1] != "OAUTHBEARER"]
)
def test_kafka_python(secured: SecuredBroker, listener: str, mechanism: str, user: str) -> None:
    if user.startswith("carol"):
        user = "bob"  # kafka-python does not escape commas in SCRAM user names
    settings = python_settings(secured, listener, mechanism, user)
    topic = topic_name(listener, mechanism)
    with closing(KafkaProducer(**settings, acks="all")) as producer:
        for number in range(NUM):
            producer.send(topic, str(number).encode())
        producer.flush(30)
    with closing(
        KafkaConsumer(topic, **settings, auto_offset_reset="earliest", group_id=topic)
    ) as consumer:
        count, deadline = 0, time.monotonic() + 40
        while count < NUM and time.monotonic() < deadline:
            count += sum(map(len, consumer.poll(1000).values()))
    assert count == NUM
