from broker.config import BrokerConfig, TopicConfig
from broker.config.topic import topic_defaults
from broker.log.config import LogConfig


def test_log_config_of_a_topic_without_overrides_has_kafkas_defaults() -> None:
    assert LogConfig.of(TopicConfig.parse({}, topic_defaults(BrokerConfig()))) == LogConfig()


def test_log_config_has_settings_of_topic_and_broker() -> None:
    broker = BrokerConfig.parse({"log.roll.hours": "1", "log.message.timestamp.after.max.ms": "7"})
    own = {"cleanup.policy": "compact,delete", "message.timestamp.difference.max.ms": "5"}
    log = LogConfig.of(TopicConfig.parse(own, topic_defaults(broker)))
    assert log.cleanup_policy == {"compact", "delete"}
    assert log.segment_ms == 3_600_000
    assert log.message_timestamp_before_max_ms == 5  # from the older setting
    assert log.message_timestamp_after_max_ms == 7


def test_logs_with_equal_settings_share_one_object() -> None:
    broker = topic_defaults(BrokerConfig())
    one, same = (LogConfig.of(TopicConfig.parse({"flush.ms": "7"}, broker)) for _ in range(2))
    other = LogConfig.of(TopicConfig.parse({"flush.ms": "8"}, broker))
    assert one is same
    assert one is not other
