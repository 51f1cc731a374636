"""The JAAS file of brokers that were configured for Apache Kafka.

Kafka's scripts pass `KAFKA_OPTS` to Java, and so name a file with the logins of SASL listeners:

    KAFKA_OPTS=-Djava.security.auth.login.config=/etc/kafka/kafka_server_jaas.conf

A listener and mechanism without `sasl.jaas.config` gets its login module from the section
`<listener>.KafkaServer`, or else from `KafkaServer`, as in Kafka.
"""

import logging
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker.config import BrokerConfig, ConfigError
from broker.security.jaas import JaasError, parse_jaas
from broker.security.jaas_file import parse_jaas_file
from broker.security.sasl_mechanisms import MODULES, jaas_key

logger = logging.getLogger(__name__)

_OPTION: Final = "-Djava.security.auth.login.config="
_SECTION: Final = "KafkaServer"


def with_jaas_file(config: BrokerConfig, environment: Mapping[str, str]) -> BrokerConfig:
    """The settings, with login modules of the file that KAFKA_OPTS names, if it names one.

    ConfigError if the file cannot be used; the message does not quote the file.
    """
    path = _path(environment.get("KAFKA_OPTS", ""))
    if path is None:
        return config
    try:
        sections = parse_jaas_file(path.read_text())
        logins = _logins(config, sections)
    except (OSError, JaasError, UnicodeDecodeError) as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise ConfigError(f"KAFKA_OPTS: {_OPTION}{path}: {reason}") from error
    ignored = [name for name in sections if name.rpartition(".")[2] != _SECTION]
    logger.info("read JAAS file path=%s settings=%s", path, ",".join(logins) or "none")
    if ignored:
        logger.warning("sections without effect path=%s sections=%s", path, ",".join(ignored))
    return type(config).parse({**config.originals, **logins}) if logins else config


def _path(options: str) -> Path | None:
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise ConfigError(f"KAFKA_OPTS is malformed: {error}") from error
    paths = [word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)]
    return Path(paths[-1].removeprefix("=")) if paths else None


def _logins(config: BrokerConfig, sections: Mapping[str, list[str]]) -> dict[str, str]:
    """Settings for every listener and mechanism that has none."""
    found: dict[str, str] = {}
    for listener in config.listeners:
        if not (config.security_protocol(listener.name) or "").startswith("SASL"):
            continue
        own = sections.get(f"{listener.name.lower()}.{_SECTION}")
        entries = sections.get(_SECTION, []) if own is None else own
        modules = {parse_jaas(entry).module: entry for entry in entries}
        for mechanism in config.for_listener(listener.name).sasl_enabled_mechanisms:
            key, module = jaas_key(listener.name, mechanism), MODULES.get(mechanism)
            if key not in config.originals and module in modules:
                found[key] = modules[module]
    return found
