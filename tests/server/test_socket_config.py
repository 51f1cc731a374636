"""The settings of sockets, and those that can be changed while the broker runs."""

import time
from pathlib import Path

import pytest

from broker.config import BrokerConfig, ConfigError
from broker.net.connection_quotas import ConnectionQuotas
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker.protocol.messages.metadata import MetadataRequest
from broker.server.socket_config import connection_settings, socket_server_config
from tests.support.broker import running_broker
from tests.support.wire import WireClient

TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,EXTERNAL://127.0.0.1:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT",
}


def test_hosts_of_overrides_become_addresses() -> None:
    text = "localhost:3,127.0.0.2:4,0:0:0:0:0:0:0:1:5"
    config = BrokerConfig.parse({"max.connections.per.ip.overrides": text})
    overrides = socket_server_config(config).max_connections_per_ip_overrides
    assert overrides == {"127.0.0.1": 3, "127.0.0.2": 4, "::1": 5}


def test_host_that_cannot_be_resolved_is_an_os_error() -> None:
    config = BrokerConfig.parse({"max.connections.per.ip.overrides": "no-such-host.invalid:3"})
    with pytest.raises(OSError, match="cannot resolve no-such-host"):
        socket_server_config(config)


def test_limit_of_one_listener_is_read_from_its_prefixed_key() -> None:
    key = "listener.name.external.max.connections"
    config = BrokerConfig.parse({**TWO_LISTENERS, key: "7"})
    found = socket_server_config(config)
    assert found.max_connections_per_listener == {"EXTERNAL": 7}
    assert connection_settings(config) != connection_settings(BrokerConfig.parse(TWO_LISTENERS))
    with pytest.raises(ConfigError):
        socket_server_config(BrokerConfig.parse({**TWO_LISTENERS, key: "many"}))


@pytest.mark.parametrize(("settings", "protected"), [({}, None), (TWO_LISTENERS, "PLAINTEXT")])
def test_inter_broker_listener_is_protected_only_beside_others(
    settings: dict[str, str], protected: str | None
) -> None:
    assert socket_server_config(BrokerConfig.parse(settings)).protected_listener == protected


def test_memory_limit_is_queued_max_request_bytes() -> None:
    text = str(200 * 2**20)
    config = socket_server_config(BrokerConfig.parse({"queued.max.request.bytes": text}))
    assert ConnectionQuotas(config).request_memory.limit_bytes == 200 * 2**20


def test_dynamic_limit_per_ip_is_applied_to_new_connections(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            wire.ask(
                IncrementalAlterConfigsRequest(
                    resources=[
                        AlterConfigsResource(
                            resource_type=4,
                            resource_name="",
                            configs=[
                                AlterableConfig(
                                    name="max.connections.per.ip", config_operation=0, value="1"
                                )
                            ],
                        )
                    ]
                ),
                1,
            )
            deadline = time.monotonic() + 10
            while _is_served(broker.bootstrap_servers):
                assert time.monotonic() < deadline, "the limit is not applied"
        broker.server.wait_for_line("rejected connection .* max.connections.per.ip=1")


def _is_served(address: str) -> bool:
    with WireClient(address) as wire:
        try:
            return wire.ask(MetadataRequest(topics=[]), 12).cluster_id is not None
        except (AssertionError, ConnectionError):
            return False
