"""From ssl.* settings to TLS contexts: every kind of store, protocols, ciphers, contradictions."""

import ssl
from pathlib import Path

import pytest

from broker.config import BrokerConfig, ConfigError
from broker.security.cipher_suites import openssl_name
from broker.security.ssl_settings import server_tls_settings, tls_identity
from broker.security.tls import TlsError
from broker.security.tls_server import server_context
from tests.support.certificates import Authority

STORES = Path(__file__).parents[1] / "golden" / "keystores"
AUTHORITY = Authority()
OWN = AUTHORITY.certificate_for("localhost")
LOCKED = AUTHORITY.certificate_for("localhost", password="canary-password")
JKS = {
    "ssl.keystore.location": str(STORES / "keytool.jks"),
    "ssl.keystore.password": "storepass",
    "ssl.key.password": "keypass1",
}
P12 = {
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": str(STORES / "keytool.p12"),
    "ssl.keystore.password": "storepass",
}


def inline(chain: str, key: str) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": chain,
        "ssl.keystore.key": key,
    }


def context_of(**texts: str) -> ssl.SSLContext:
    given = {key.replace("_", "."): text for key, text in texts.items()}
    config = BrokerConfig.parse({"listeners": "SSL://:1"} | given)
    return server_context(server_tls_settings(config, "SSL"))


@pytest.mark.parametrize(
    "settings",
    [
        JKS,
        P12,
        {**P12, "ssl.keystore.type": "JKS"},  # Java reads either as the other
        inline(OWN.certificate, OWN.key),
        inline(OWN.certificate.replace("\n", " "), OWN.key.replace("\n", "\\n")),
        inline(LOCKED.certificate, LOCKED.key) | {"ssl.key.password": "canary-password"},
        {f"listener.name.ssl.{key}": text for key, text in JKS.items()},
    ],
    ids=["JKS", "PKCS12", "PKCS12 as JKS", "inline", "one line", "locked key", "of the listener"],
)
def test_key_store_gives_a_context(settings: dict[str, str]) -> None:
    assert context_of(**settings).verify_mode is ssl.CERT_NONE


def test_trust_stores_are_read() -> None:
    for name in ("trust.jks", "trust.p12"):
        location = {"ssl.truststore.location": str(STORES / name)}
        context = context_of(
            **JKS,
            **location,
            **{"ssl.truststore.password": "storepass"},
            ssl_client_auth="required",
        )
        assert context.cert_store_stats()["x509"] == 1
        assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "requires a key store"),
        ({"ssl.keystore.location": "/x"}, "key store password is not specified"),
        ({"ssl.keystore.password": "x"}, "SSL key store is not specified"),
        ({**P12, "ssl.keystore.type": "PEM"}, "cannot be specified with PEM format"),
        ({**JKS, "ssl.keystore.key": "x"}, "only for PEM, but key store type is JKS"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": OWN.key}, "chain is not specified"),
        ({"ssl.keystore.certificate.chain": "x"}, "private key is not specified"),
        ({**JKS, "ssl.keystore.type": "BCFKS"}, "this broker reads JKS, PKCS12, PEM"),
        ({**JKS, "ssl.keystore.password": "canary-password"}, "password of the store is wrong"),
        ({**JKS, "ssl.enabled.protocols": "TLSv1.1"}, "TLSv1.1; known are TLSv1.2"),
        ({**JKS, "ssl.cipher.suites": "TLS_NULL_WITH_NOTHING"}, "none of"),
        ({**JKS, "ssl.truststore.password": "x"}, "SSL trust store is not specified"),
    ],
)
def test_unusable_settings_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises((ConfigError, TlsError), match=words) as caught:
        context_of(**settings)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("protocols", "lowest", "highest"),
    [("TLSv1.3", "TLSv1_3", "TLSv1_3"), ("TLSv1.2,TLSv1.3", "TLSv1_2", "TLSv1_3")],
)
def test_protocols_are_limited(protocols: str, lowest: str, highest: str) -> None:
    context = context_of(**JKS, ssl_enabled_protocols=protocols)
    assert (context.minimum_version.name, context.maximum_version.name) == (lowest, highest)


def test_cipher_suites_have_javas_names() -> None:
    suites = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    context = context_of(**JKS, ssl_cipher_suites=suites)
    names = {cipher["name"] for cipher in context.get_ciphers()}
    assert {"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"} <= names
    assert context.maximum_version is ssl.TLSVersion.TLSv1_2  # no suite of TLS 1.3 is listed
    only = context_of(**JKS, ssl_cipher_suites="TLS_AES_256_GCM_SHA384")
    assert only.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        (
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
    ],
)
def test_suite_is_renamed(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(f"{openssl}:@SECLEVEL=0")


def test_client_auth_of_a_sasl_listener_counts_only_with_its_prefix() -> None:
    texts = {"listeners": "SASL_SSL://:1", "ssl.client.auth": "required"} | JKS
    config = BrokerConfig.parse(texts)
    assert server_tls_settings(config, "SASL_SSL").client_auth == "none"
    own = {"listener.name.sasl_ssl.ssl.client.auth": "required"}
    config = BrokerConfig.parse(texts | own)
    assert server_tls_settings(config, "SASL_SSL").client_auth == "required"


def test_empty_endpoint_identification_disables_the_check_of_host_names() -> None:
    config = BrokerConfig.parse({**JKS, "ssl.endpoint.identification.algorithm": ""})
    assert not tls_identity(config).check_hostname
