"""Kafka's settings of brokers and topics: declarations, values, checks.

    settings/       every broker setting, by subject: key, type, default, limits, effect, a sentence
    broker          BrokerConfig: all of them, and values that follow from several
    topic           TopicConfig, and the broker settings that a topic falls back to
    loading         server.properties → BrokerConfig; `properties` parses the file, `checks` and
                    `support` refuse what Kafka refuses and what this broker does not have
    dynamic         changes while the broker runs: precedence and subscribers
    reference       docs/settings.md, generated from the declarations

Settings are text to Kafka: `values` converts text to values and back, `definitions` declares
settings. Of the rest of the broker, the package imports only `errors` and `java_properties`.
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
