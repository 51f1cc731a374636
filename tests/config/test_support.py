"""Unsupported settings prevent the start; settings without effect are logged as a warning."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from broker.config import parse_config
from broker.config.dynamic import EntityType
from broker.config.support import UnsupportedSetting
from broker.errors import ErrorCode
from tests.config.scenario import set_broker
from tests.config.support import ConfigApis

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"

UNSUPPORTED = [
    {"listeners": "PLAINTEXT://:1,SASL_PLAINTEXT://:2"},  # GSSAPI is the default
    {"listeners": "PLAINTEXT://:1,SASL_SSL://:2", "sasl.enabled.mechanisms": "PLAIN,GSSAPI"},
    {"listeners": "PLAINTEXT://:1,SASL_SSL://:2", "sasl.enabled.mechanisms": "DIGEST-MD5"},
    {"ssl.engine.factory.class": "org.example.Factory"},
    {"ssl.provider": "BC"},
    {"sasl.client.callback.handler.class": "org.example.Handler"},
    {"sasl.login.class": "org.example.Login"},
    {"sasl.login.callback.handler.class": "org.example.Handler"},
    {"authorizer.class.name": "org.example.MyAuthorizer"},
    {"authorizer.class.name": ACL_AUTHORIZER, "authorizer.zookeeper.url": "elsewhere:2181"},
    {"principal.builder.class": "org.example.Builder"},
    {"security.providers": "org.example.Provider"},
    {"create.topic.policy.class.name": "org.example.Policy"},
    {"alter.config.policy.class.name": "org.example.Policy"},
    {"client.quota.callback.class": "org.example.Callback"},
    {"replica.selector.class": "org.example.Selector"},
    {"process.roles": "broker"},
    {"process.roles": "broker,controller"},
    {"controller.quorum.voters": "1@host:9093"},
    {"controller.quorum.bootstrap.servers": "host:9093"},
    {"zookeeper.metadata.migration.enable": "true"},
    {"remote.log.storage.system.enable": "true"},
    {"zookeeper.ssl.enabled.protocols": "TLSv1.3"},
    {"zookeeper.ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"},
    {"zookeeper.ssl.crl.enable": "true"},
    {"zookeeper.ssl.ocsp.enable": "true"},
]


@pytest.mark.parametrize("given", UNSUPPORTED, ids=lambda given: list(given)[-1])
def test_unsupported_setting_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(UnsupportedSetting) as refusal:
        parse_config(given)
    line = str(refusal.value)
    assert any(line.startswith(f"{key}=") for key in [*given, "sasl.enabled.mechanisms"])
    assert "\n" not in line
    assert any(remedy in line for remedy in ("remove", "set it to", "map its name"))
    assert "canary-secret" not in line


@pytest.mark.parametrize(
    "given",
    [
        {"authorizer.class.name": ""},
        {"authorizer.class.name": ACL_AUTHORIZER},
        {"process.roles": ""},
        {"remote.log.storage.system.enable": "false"},
        {
            "principal.builder.class": "org.apache.kafka.common.security.authenticator."
            "DefaultKafkaPrincipalBuilder"
        },
        {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"},
    ],
)
def test_default_of_an_unsupported_setting_is_accepted(given: dict[str, str]) -> None:
    assert parse_config(given).originals == given


def start(tmp_path: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    overrides = [f"--override={key.replace('_', '.')}={text}" for key, text in settings.items()]
    command = [sys.executable, "-m", "broker", f"--override=log.dirs={tmp_path}", *overrides]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_broker_with_kerberos_does_not_start(tmp_path: Path) -> None:
    stopped = start(
        tmp_path,
        listeners="PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        sasl_enabled_mechanisms="GSSAPI",
    )
    assert stopped.returncode == 1
    (line,) = stopped.stderr.splitlines()
    assert line == (
        "kctl-broker: sasl.enabled.mechanisms=GSSAPI: listener SASL_SSL: this broker has no "
        "Kerberos; set it to one or more of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"
    )
    assert not list(tmp_path.iterdir())


def test_broker_with_tls_but_without_certificate_does_not_start(tmp_path: Path) -> None:
    stopped = start(tmp_path, listeners="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0")
    assert stopped.returncode == 1
    (line,) = stopped.stderr.splitlines()
    assert line == (
        "kctl-broker: listener SSL: a TLS listener requires a key store: set ssl.keystore.location"
    )


def test_rejected_setting_of_one_listener_is_refused() -> None:
    with pytest.raises(UnsupportedSetting, match="loads no classes"):
        parse_config({"listener.name.plaintext.ssl.engine.factory.class": "org.example.Factory"})


def test_broker_with_an_unknown_authorizer_does_not_start(tmp_path: Path) -> None:
    stopped = start(
        tmp_path, listeners="PLAINTEXT://127.0.0.1:0", authorizer_class_name="org.example.Mine"
    )
    assert stopped.returncode == 1
    (line,) = stopped.stderr.splitlines()
    assert line.startswith("kctl-broker: authorizer.class.name=org.example.Mine: ")


def test_broker_with_a_malformed_super_user_does_not_start(tmp_path: Path) -> None:
    stopped = start(
        tmp_path,
        listeners="PLAINTEXT://127.0.0.1:0",
        authorizer_class_name=ACL_AUTHORIZER,
        super_users="User:admin;alice",
    )
    assert stopped.returncode == 1
    assert stopped.stderr.splitlines()[-1].startswith("kctl-broker: super.users=User:admin;alice: ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("listeners", "PLAINTEXT://127.0.0.1:49092,SSL://127.0.0.1:1"),
        ("listeners", "PLAINTEXT://127.0.0.1:1"),
        ("advertised.listeners", "PLAINTEXT://127.0.0.1:1"),
        ("listener.security.protocol.map", "PLAINTEXT:SASL_SSL"),
        ("principal.builder.class", "org.example.Builder"),
        ("authorizer.class.name", ACL_AUTHORIZER),
        ("control.plane.listener.name", "PLAINTEXT"),
    ],
)
def test_dynamic_change_to_an_unsupported_setting_is_refused(key: str, value: str) -> None:
    apis = ConfigApis({"listeners": "PLAINTEXT://127.0.0.1:49092"})
    (result,) = asyncio.run(apis.send(set_broker(key, value))).responses
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message
    assert apis.store.configs == {}


def test_known_settings_without_effect_are_listed_in_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parse_config(
        {
            "super.users": "User:admin",
            "allow.everyone.if.no.acl.found": "true",
            "listener.name.plaintext.max.connections": "5",
            "listener.name.plaintext.num.io.threads": "5",
            "listener.name.plaintext.ssl.client.auth": "required",
            "num.partitions": "2",
        }
    )
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (
        logging.WARNING,
        "settings without effect on this broker: allow.everyone.if.no.acl.found, "
        "listener.name.plaintext.num.io.threads, super.users",
    )


def test_unsupported_stored_setting_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    dynamic = ConfigApis({"listeners": "PLAINTEXT://127.0.0.1:49092"}).dynamic
    dynamic.apply(EntityType.BROKER, "1", {"principal.builder.class": "org.example.Builder"})
    assert dynamic.broker is dynamic.static
    assert "principal.builder.class=org.example.Builder" in caplog.text


def test_dynamic_setting_without_effect_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    dynamic = ConfigApis({"listeners": "PLAINTEXT://127.0.0.1:49092"}).dynamic
    dynamic.apply(EntityType.BROKER, "1", {"num.io.threads": "9"})
    dynamic.apply(EntityType.BROKER, "1", {"num.io.threads": "9", "log.retention.ms": "5"})
    (record,) = caplog.records
    assert record.getMessage() == "dynamic settings without effect on this broker: num.io.threads"
