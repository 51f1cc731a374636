"""From a server.properties to the BrokerConfig that a broker starts with."""

import logging
from collections.abc import Mapping
from pathlib import Path

from broker.config.broker import BrokerConfig
from broker.config.checks import check_together
from broker.config.properties import read_properties
from broker.config.synonyms import broker_synonyms

logger = logging.getLogger(__name__)


def load_config(path: Path | None, overrides: Mapping[str, str]) -> BrokerConfig:
    """Read a server.properties (None: only defaults), then apply `overrides`."""
    properties = read_properties(path) if path else {}
    return parse_config(properties | dict(overrides))


def parse_config(properties: Mapping[str, str]) -> BrokerConfig:
    """The config a broker starts with; warns of unknown keys, refuses what cannot work."""
    for key in properties:
        if not any(synonym in BrokerConfig.settings for synonym in broker_synonyms(key)):
            logger.warning("unknown setting is ignored key=%s", key)
    config = BrokerConfig.parse(properties)
    check_together(config)
    return config
