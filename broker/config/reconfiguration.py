"""Which broker settings can be changed dynamically, and by how much at a time."""

from collections.abc import Iterable, Mapping
from typing import Final

from broker.config.broker import BrokerConfig, DynamicOnlySettings
from broker.config.definitions import PER_BROKER, READ_ONLY, Setting
from broker.config.synonyms import base_key, broker_synonyms
from broker.config.values import ConfigError, ConfigType, invalid_value

SECURITY_KEYS: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""Can be changed only per listener, with the listener prefix."""

DYNAMIC_KEYS: Final = frozenset(
    key for key, setting in BrokerConfig.settings.items() if setting.mode is not READ_ONLY
)
_PER_BROKER_KEYS: Final = frozenset(
    key for key, setting in BrokerConfig.settings.items() if setting.mode is PER_BROKER
)
_CLUSTER_WIDE_LISTENER_KEYS: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
_DYNAMIC_PASSWORDS: Final = tuple(
    key for key in DYNAMIC_KEYS if BrokerConfig.settings[key].type is ConfigType.PASSWORD
)


def is_password(key: str) -> bool:
    """Whether the setting is stored encrypted."""
    return key.endswith(_DYNAMIC_PASSWORDS)


def setting_of(key: str) -> Setting | None:
    """The declaration of a broker setting, with or without listener prefix; None if unknown."""
    for synonym in (key, *broker_synonyms(key)):
        for known in (BrokerConfig.settings, DynamicOnlySettings.settings):
            if synonym in known:
                return known[synonym]
    return None


def check_dynamic(overrides: Mapping[str, str], *, per_broker: bool) -> None:
    """ConfigError for settings that cannot be changed dynamically, or only per broker."""
    _refuse("Cannot update these configs dynamically", _not_dynamic(overrides))
    _refuse(
        "These security configs can be dynamically updated only per-listener using the "
        "listener prefix",
        SECURITY_KEYS.intersection(overrides),
        shown_as="HashSet",
    )
    for key, text in overrides.items():
        check_value(key, text)
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            _only_per_broker(overrides),
        )


def usable(overrides: Mapping[str, str], *, per_broker: bool) -> tuple[dict[str, str], list[str]]:
    """The valid part of stored settings, and the keys of the rest."""
    unusable = {*_not_dynamic(overrides), *SECURITY_KEYS.intersection(overrides)}
    if not per_broker:
        unusable.update(_only_per_broker(overrides))
    unusable.update(key for key, text in overrides.items() if not _is_valid(key, text))
    return {k: v for k, v in overrides.items() if k not in unusable}, sorted(unusable)


def check_value(key: str, text: str) -> None:
    """ConfigError if the value is invalid; unknown settings accept any."""
    setting = setting_of(base_key(key) or key)
    if setting:
        setting.parse(text)


def _is_valid(key: str, text: str) -> bool:
    try:
        check_value(key, text)
    except ConfigError:
        return False
    return True


def _not_dynamic(keys: Iterable[str]) -> set[str]:
    return {key for key in keys if key in BrokerConfig.settings and key not in DYNAMIC_KEYS}


def _only_per_broker(keys: Iterable[str]) -> set[str]:
    return {
        key
        for key in keys
        if key in _PER_BROKER_KEYS
        or ((base := base_key(key)) and base not in _CLUSTER_WIDE_LISTENER_KEYS)
    }


def _refuse(sentence: str, keys: Iterable[str], shown_as: str = "Set") -> None:
    if refused := sorted(keys):
        raise ConfigError(f"{sentence}: {shown_as}({', '.join(refused)})")


_THREADS: Final = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
)


def check_step(old: BrokerConfig, new: BrokerConfig) -> None:
    """ConfigError if a running broker cannot change from `old` to `new`.

    A number of threads may at most double or halve, local retention must not exceed the retention,
    and an existing listener keeps its security protocol. Unchanged settings are not checked.
    """
    for key in _THREADS:
        _check_threads(key, _number(old, key), _number(new, key))
    _check_cleaner_threads(old.log_cleaner_threads, new.log_cleaner_threads)
    if _local_retention(old) != _local_retention(new):
        for kept_key, kept, local_key, local in _local_retention(new):
            _check_local_retention(kept_key, kept, local_key, local)
    kept_listeners = {a.name for a in old.listeners} & {a.name for a in new.listeners}
    for name in sorted(kept_listeners):
        if old.security_protocol(name) != new.security_protocol(name):
            raise ConfigError(f"Security protocol cannot be updated for existing listener {name}")


def _number(config: BrokerConfig, key: str) -> int:
    return int(getattr(config, key.replace(".", "_")))


def _check_threads(key: str, old: int, new: int) -> None:
    failed = f"Dynamic thread count update validation failed for {key}={new}, value should"
    if new < old // 2:
        raise ConfigError(f"{failed} be at least half the current value {old}")
    if new > old * 2:
        raise ConfigError(f"{failed} not be greater than double the current value {old}")


def _check_cleaner_threads(old: int, new: int) -> None:
    if new == old:
        return
    if new < 1:
        raise ConfigError("Log cleaner threads should be at least 1")
    if new < old // 2:
        raise ConfigError(
            f"Log cleaner threads cannot be reduced to less than half the current value {old}"
        )
    if new > old * 2:
        raise ConfigError(
            f"Log cleaner threads cannot be increased to more than double the current value {old}"
        )


def _local_retention(config: BrokerConfig) -> tuple[tuple[str, int, str, int], ...]:
    """Retention and local retention by time and by size: key, value, local key, local value."""
    ms, local_ms = config.retention_ms, config.log_local_retention_ms
    size, local_size = config.log_retention_bytes, config.log_local_retention_bytes
    return (
        ("log.retention.ms", ms, "log.local.retention.ms", local_ms),
        ("log.retention.bytes", size, "log.local.retention.bytes", local_size),
    )


def _check_local_retention(kept_key: str, kept: int, local_key: str, local: int) -> None:
    if kept == -1 or local == -2:
        return
    if local == -1:
        wanted = f"Value must not be -1 as {kept_key} value is set as {kept}."
        raise invalid_value(local_key, local, wanted)
    if local > kept:
        wanted = f"Value must not be more than {kept_key} property value: {kept}"
        raise invalid_value(local_key, local, wanted)
