"""Every handler has tests/api/test_<api>.py, or is listed here with the tests it has instead."""

from pathlib import Path
from typing import Final

import pytest

from broker.api.rows import Row
from broker.api.table import TABLE

TESTS: Final = Path(__file__).parents[1]

COMPARED_WITH_KAFKA: Final = "conversations recorded from Kafka cover every version and error"
GROUP_STORIES: Final = "stories of groups, recorded from Kafka, cover it together with other APIs"
TRANSACTIONS: Final = "a script of transactions, recorded from Kafka, covers it with other APIs"
BETWEEN_BROKERS: Final = "only brokers send it, and its effect needs more than one broker"

TESTED_ELSEWHERE: Final[dict[str, tuple[str, str]]] = {
    "add_offsets_to_txn": ("txn/wire_script.py", TRANSACTIONS),
    "add_partitions_to_txn": ("txn/wire_script.py", TRANSACTIONS),
    "allocate_producer_ids": ("txn/test_producer_ids.py", BETWEEN_BROKERS),
    "alter_client_quotas": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "alter_configs": ("config/scenario.py", "a scenario recorded from Kafka covers it"),
    "alter_partition": ("replica/test_alter_partition_manager.py", BETWEEN_BROKERS),
    "alter_partition_reassignments": ("conformance/admin_cluster.py", COMPARED_WITH_KAFKA),
    "alter_replica_log_dirs": ("api/test_log_dirs.py", "tested with DescribeLogDirs"),
    "alter_user_scram_credentials": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "api_versions": ("api/test_dispatch.py", "its response is the API table, tested with it"),
    "consumer_group_describe": ("group/stories.py", GROUP_STORIES),
    "consumer_group_heartbeat": ("group/stories.py", GROUP_STORIES),
    "controlled_shutdown": ("controller/test_scenarios.py", BETWEEN_BROKERS),
    "create_acls": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "create_delegation_token": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "create_partitions": ("conformance/admin_topics.py", COMPARED_WITH_KAFKA),
    "delete_acls": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "delete_groups": ("group/stories.py", GROUP_STORIES),
    "delete_records": ("conformance/admin_offsets.py", COMPARED_WITH_KAFKA),
    "delete_topics": ("conformance/admin_topics.py", COMPARED_WITH_KAFKA),
    "describe_acls": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "describe_client_quotas": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "describe_cluster": ("conformance/admin_cluster.py", COMPARED_WITH_KAFKA),
    "describe_configs": ("api/test_configs_like_kafka.py", "its response is compared with Kafka's"),
    "describe_delegation_token": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "describe_groups": ("group/stories.py", GROUP_STORIES),
    "describe_log_dirs": ("api/test_log_dirs.py", "tested with AlterReplicaLogDirs"),
    "describe_producers": ("txn/wire_script.py", TRANSACTIONS),
    "describe_transactions": ("txn/wire_script.py", TRANSACTIONS),
    "describe_user_scram_credentials": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "elect_leaders": ("conformance/admin_cluster.py", COMPARED_WITH_KAFKA),
    "end_txn": ("txn/wire_script.py", TRANSACTIONS),
    "envelope": ("conformance/hostile.py", "it closes the connection"),
    "expire_delegation_token": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "incremental_alter_configs": ("config/scenario.py", "a scenario recorded from Kafka covers it"),
    "init_producer_id": ("txn/wire_script.py", TRANSACTIONS),
    "leader_and_isr": ("replica/test_controller_requests.py", BETWEEN_BROKERS),
    "list_groups": ("group/stories.py", GROUP_STORIES),
    "list_partition_reassignments": ("conformance/admin_cluster.py", COMPARED_WITH_KAFKA),
    "list_transactions": ("txn/wire_script.py", TRANSACTIONS),
    "offset_delete": ("group/stories.py", GROUP_STORIES),
    "offset_for_leader_epoch": ("conformance/admin_offsets.py", COMPARED_WITH_KAFKA),
    "renew_delegation_token": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "sasl_authenticate": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "sasl_handshake": ("conformance/admin_security.py", COMPARED_WITH_KAFKA),
    "stop_replica": ("replica/test_controller_requests.py", BETWEEN_BROKERS),
    "txn_offset_commit": ("txn/wire_script.py", TRANSACTIONS),
    "update_features": ("conformance/admin_cluster.py", COMPARED_WITH_KAFKA),
    "update_metadata": ("replica/test_controller_requests.py", BETWEEN_BROKERS),
    "write_txn_markers": ("txn/wire_script.py", TRANSACTIONS),
}
"""The file below tests/ that sends the request, and why there is no file of its own."""


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda row: row.api_key.name)
def test_handler_has_tests(row: Row) -> None:
    api = row.api_key
    name = api.name.lower()
    own = TESTS / "api" / f"test_{name}.py"
    if name not in TESTED_ELSEWHERE:
        assert own.exists(), f"write {own.name}, or list {name} in {Path(__file__).name}"
        return
    assert not own.exists(), f"{own.name} exists: remove {name} from the list"
    text = (TESTS / TESTED_ELSEWHERE[name][0]).read_text()
    assert f"{api.display_name}Request" in text


def test_list_names_handlers_only() -> None:
    assert TESTED_ELSEWHERE.keys() <= {row.api_key.name.lower() for row in TABLE.values()}
