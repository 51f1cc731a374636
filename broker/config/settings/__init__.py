"""Kafka's broker settings, by subject; `broker.config.broker` joins them into BrokerConfig."""
