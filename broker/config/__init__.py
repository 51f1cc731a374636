"""Kafka's settings: what can be told to a broker and to a topic, and what they were told.

    settings/       every broker setting, by subject: key, type, default, limits, a sentence
    broker          BrokerConfig, all of them, and what follows from several
    topic           TopicConfig, and the broker settings a topic falls back to
    loading         server.properties → BrokerConfig; `properties` reads the file, `checks` compares
    dynamic         what changes while the broker runs: who overrides whom, who is told

Settings are text to Kafka; `values` is how text becomes a value and back, `definitions` how a
setting is declared. This room knows no other but `errors`.
"""

from broker.config.broker import BrokerConfig
from broker.config.listeners import Listener
from broker.config.loading import load_config, parse_config
from broker.config.properties import read_properties
from broker.config.topic import TopicConfig
from broker.config.values import ConfigError

__all__ = [
    "BrokerConfig",
    "ConfigError",
    "Listener",
    "TopicConfig",
    "load_config",
    "parse_config",
    "read_properties",
]
