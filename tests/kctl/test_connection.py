"""What a cluster that cannot do something is told apart by, and what the user is told."""

import pytest

from broker.errors import ApiError, ErrorCode
from broker.net.client import Client
from broker.protocol.api_keys import ApiKey
from kctl.admin.connection import KAFKA_WITH, ask
from kctl.errors import CliError
from kctl.options import Session


def refusal(code: ErrorCode, message: str) -> CliError:
    async def question(_: Client) -> None:
        raise ApiError(code, message)

    with pytest.raises(CliError) as caught:
        ask(Session(bootstrap_server="nowhere:1"), question)
    return caught.value


def test_older_cluster_is_told_which_kafka_has_what_it_lacks() -> None:
    message = "IncrementalAlterConfigs needs versions 0 to 1, but the broker does not serve it"
    error = refusal(ErrorCode.UNSUPPORTED_VERSION, message)
    assert "too old" in error.message
    assert error.hint == "Kafka 2.3 and newer have it"


def test_lack_of_something_old_points_to_what_there_is() -> None:
    error = refusal(ErrorCode.UNSUPPORTED_VERSION, "Fetch needs versions 4 to 16")
    assert "kctl api-versions" in error.hint


def test_any_other_refusal_is_told_with_its_code() -> None:
    error = refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not you")
    assert "not you (CLUSTER_AUTHORIZATION_FAILED)" in error.message.replace(": ", "", 1)


def test_table_of_versions_names_apis_that_there_are() -> None:
    assert KAFKA_WITH.keys() <= {api.display_name for api in ApiKey}
