"""Loads the BrokerConfig that a broker starts with from a server.properties."""

import logging
from collections.abc import Mapping
from pathlib import Path

from broker.config.broker import BrokerConfig
from broker.config.checks import check_together
from broker.config.properties import read_properties
from broker.config.support import check_supported, effect_of, ineffective

logger = logging.getLogger(__name__)


def load_config(path: Path | None, overrides: Mapping[str, str]) -> BrokerConfig:
    """Read a server.properties (None: only defaults), then apply `overrides`."""
    properties = read_properties(path) if path else {}
    return parse_config(properties | dict(overrides))


def parse_config(properties: Mapping[str, str]) -> BrokerConfig:
    """The config a broker starts with; ConfigError for settings it cannot start with.

    Logs one warning per unknown key, and one that lists all known keys whose value has no effect.
    """
    for key in properties:
        if effect_of(key) is None:
            logger.warning("ignored unknown setting key=%s", key)
    config = BrokerConfig.parse(properties)
    check_together(config)
    check_supported(config)
    if keys := ineffective(config):
        logger.warning("settings without effect on this broker: %s", ", ".join(keys))
    return config
