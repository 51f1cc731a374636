"""Kafka's broker settings by subject; `broker.config.broker` combines them in BrokerConfig."""
