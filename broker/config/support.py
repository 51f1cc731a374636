"""Settings that this broker does not support.

A listener must never give less protection than its security protocol promises, and a broker must
not run without the authorizer or policy in its file. Such settings prevent the start, and dynamic
changes to them are refused, with one line: setting, value, what to do. Their declarations contain
`rejected`; the SASL mechanisms of listeners, which depend on several keys, are checked here.
"""

from typing import Final

from broker.config.broker import BrokerConfig
from broker.config.checks import RequirementFailed
from broker.config.definitions import Effect, Status, no_effect
from broker.config.settings.authorizer import AuthorizerSettings
from broker.config.synonyms import base_key, broker_synonyms

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""The SASL mechanisms that this broker has."""

REPLICA_SELECTORS: Final = (
    None,
    "org.apache.kafka.common.replica.LeaderSelector",
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
)

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"

_REJECTED: Final = tuple(
    (attribute, setting)
    for attribute, key in BrokerConfig.attributes.items()
    if (setting := BrokerConfig.settings[key]).effect.status is Status.REJECTED
)


_AUTHORIZER_URL: Final = "authorizer.zookeeper.url"


class UnsupportedSetting(RequirementFailed):
    """A valid setting of Kafka that this broker cannot obey and must not ignore."""


def check_supported(config: BrokerConfig) -> None:
    """UnsupportedSetting for the first setting that this broker does not support."""
    for listener in config.listeners:
        _check_listener(config, listener.name)
    if config.replica_selector_class not in REPLICA_SELECTORS:
        known = " or ".join(filter(None, REPLICA_SELECTORS))
        problem = f"this broker loads no classes; remove the setting or use {known}"
        raise UnsupportedSetting(config, ("replica.selector.class",), problem)
    _check_authorizer(config)
    _check_rejected(config, config)


def _check_rejected(config: BrokerConfig, effective: BrokerConfig) -> None:
    for attribute, setting in _REJECTED:
        if getattr(effective, attribute) != setting.default:
            raise UnsupportedSetting(effective, (setting.key,), setting.effect.reason)


def _check_listener(config: BrokerConfig, name: str) -> None:
    own = config.for_listener(name)
    if own is not config:
        _check_rejected(config, own)
    if not (config.security_protocol(name) or "").startswith("SASL"):
        return
    for mechanism in own.sasl_enabled_mechanisms or ("",):
        if mechanism not in MECHANISMS:
            problem = (
                "this broker has no Kerberos" if mechanism == "GSSAPI" else "unknown mechanism"
            )
            raise UnsupportedSetting(
                own,
                ("sasl.enabled.mechanisms",),
                f"listener {name}: {problem}; set it to one or more of {', '.join(MECHANISMS)}",
            )


def _check_authorizer(config: BrokerConfig) -> None:
    """Refuse other authorizers, and ACLs that are not in the broker's own store."""
    if config.authorizer_class_name not in ("", ACL_AUTHORIZER):
        problem = f"this broker loads no classes; remove the setting or use {ACL_AUTHORIZER}"
        raise UnsupportedSetting(config, ("authorizer.class.name",), problem)
    url = config.originals.get(_AUTHORIZER_URL)
    if config.authorizer_class_name and url and url != config.zookeeper_connect:
        problem = f"ACLs must be where zookeeper.connect is; remove {_AUTHORIZER_URL}={url}"
        raise UnsupportedSetting(config, ("authorizer.class.name",), problem)


def check_dynamic_support(old: BrokerConfig, new: BrokerConfig) -> None:
    """UnsupportedSetting if a running broker cannot change from `old` to `new`."""
    check_supported(new)
    for key, before, after in (
        ("listeners", old.listeners, new.listeners),
        ("advertised.listeners", old.advertised_listeners, new.advertised_listeners),
    ):
        if before != after:
            raise UnsupportedSetting(
                new,
                (key,),
                f"{key} cannot be changed while this broker runs; "
                "change server.properties and restart the broker",
            )


_NOT_PER_LISTENER: Final = no_effect("not a setting of single listeners")
_PER_LISTENER: Final = ("ssl.", "sasl.")
_ALSO_PER_LISTENER: Final = frozenset(
    {
        "max.connections",
        "max.connection.creation.rate",
        "connections.max.reauth.ms",
        "principal.builder.class",
    }
)


def effect_of(key: str) -> Effect | None:
    """What this broker does with a key of its file; None if Kafka has no such setting."""
    if base_key(key):
        for synonym in broker_synonyms(key):
            if synonym in BrokerConfig.settings:
                is_read = synonym.startswith(_PER_LISTENER) or synonym in _ALSO_PER_LISTENER
                return BrokerConfig.settings[synonym].effect if is_read else _NOT_PER_LISTENER
        return None
    for settings in (BrokerConfig.settings, AuthorizerSettings.settings):
        if key in settings:
            return settings[key].effect
    return None


def ineffective(config: BrokerConfig) -> list[str]:
    """The known keys that are set and have no effect on this broker.

    A fixed setting counts only if its value is not the default.
    """
    return sorted(key for key in config.originals if _is_ineffective(config, key))


def _is_ineffective(config: BrokerConfig, key: str) -> bool:
    effect = effect_of(key)
    if effect is None:
        return False
    if key in AuthorizerSettings.settings and not config.authorizer_class_name:
        return True
    if effect.status is Status.FIXED:
        setting = config.settings[base_key(key) or key]
        return bool(setting.parse(config.originals[key]) != setting.default)
    return effect.status is Status.NO_EFFECT
