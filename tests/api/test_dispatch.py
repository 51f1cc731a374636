"""Dispatch: versions, error boundaries, and error responses in the form of each API."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.api import table
from broker.api.context import RequestContext
from broker.api.dispatch import Dispatcher
from broker.api.rows import Kind, Row
from broker.api.table import TABLE
from broker.errors import ApiError, ErrorCode
from broker.net.client import error_codes
from broker.net.connection import CloseConnection
from broker.net.deferred import DeferredResponse
from broker.protocol.api_keys import ApiKey
from broker.protocol.codec import decode, encode
from broker.protocol.errors import DecodeError
from broker.protocol.messages import request_class
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from broker.protocol.messages.fetch import FetchRequest
from broker.replica.purgatory import DelayedOperation, Purgatory
from tests.protocol.golden import samples
from tests.support.wire import CORRELATION_ID, PEER, read_answer, request_frame

SERVICES: Any = SimpleNamespace(
    purgatory=Purgatory(), request_metrics=None, client_quotas=None
)  # no other is used
AWAITABLE = "collections.abc.Awaitable"
ROWS = [pytest.param(row, id=row.api_key.name) for row in TABLE.values()]


def dispatch(frame: bytes) -> Any:
    """The response to a frame, awaited if it is deferred."""

    async def answered() -> Any:
        answer = Dispatcher(SERVICES)(memoryview(frame), PEER)
        return await answer if isinstance(answer, DeferredResponse) else answer

    return asyncio.run(answered())


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], None]:
    """Let another function handle DescribeCluster."""

    def replace(function: Callable[..., Any]) -> None:
        row = TABLE[ApiKey.DESCRIBE_CLUSTER]._replace(handle=function, kind=Kind.EITHER)
        monkeypatch.setattr("broker.api.dispatch.TABLE", {row.api_key: row})

    return replace


def later(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same handler, but one that has to wait first."""

    async def handle(request: Any, context: RequestContext) -> Any:
        await asyncio.sleep(0)
        return function(request, context)

    return handle


def ask(version: int = 1) -> DescribeClusterResponse:
    request = DescribeClusterRequest()
    return read_answer(dispatch(request_frame(request, version)), request, version)


@pytest.mark.parametrize("when", [lambda handler: handler, later])
class TestHandler:
    """Handlers that respond at once and handlers that wait."""

    def test_answer_is_sent_in_the_version_asked_for(self, handle: Any, when: Any) -> None:
        seen: list[RequestContext] = []

        def answer(request: DescribeClusterRequest, context: RequestContext) -> Any:
            seen.append(context)
            return DescribeClusterResponse(cluster_id="c")

        handle(when(answer))
        for version in (0, 1):
            assert ask(version) == DescribeClusterResponse(cluster_id="c")
        assert [context.api_version for context in seen] == [0, 1]
        assert (seen[0].client_id, seen[0].peer) == ("test", PEER)
        assert seen[0].correlation_id == CORRELATION_ID

    def test_none_is_no_answer(self, handle: Any, when: Any) -> None:
        handle(when(lambda request, context: None))
        assert dispatch(request_frame(DescribeClusterRequest(), 1)) is None

    def test_exception_is_one_log_line_and_unknown_server_error(
        self, handle: Any, when: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(request: DescribeClusterRequest, context: RequestContext) -> Any:
            raise KeyError("surprise")

        handle(when(fail))
        assert ask().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        (record,) = caplog.records
        assert record.levelno == logging.ERROR
        assert record.getMessage() == (
            "handler failed api=DESCRIBE_CLUSTER version=1 correlation_id=77 "
            "client_id=test peer=127.0.0.1:50000"
        )
        assert "KeyError: 'surprise'" in caplog.text

    def test_api_error_is_its_code_and_no_log_line(
        self, handle: Any, when: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        def refuse(request: DescribeClusterRequest, context: RequestContext) -> Any:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

        handle(when(refuse))
        assert ask().error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert not caplog.records

    def test_regression_response_that_cannot_be_encoded_is_an_unknown_server_error(
        self, handle: Any, when: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        handle(when(lambda request, context: DescribeClusterResponse(controller_id=2**40)))
        assert ask().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "DescribeClusterResponse v1: controller_id" in caplog.text
        assert len(caplog.records) == 1

    def test_close_connection_goes_through_to_the_connection(self, handle: Any, when: Any) -> None:
        def close(request: DescribeClusterRequest, context: RequestContext) -> Any:
            raise CloseConnection("acks=0 and an error")

        handle(when(close))
        with pytest.raises(CloseConnection, match="acks=0 and an error"):
            ask()


@pytest.mark.parametrize("is_refused", [False, True])
def test_operations_that_a_request_completes_run_before_its_response(
    handle: Any, is_refused: bool
) -> None:
    async def scenario() -> None:
        deadline_s = asyncio.get_running_loop().time() + 60
        operation = DelayedOperation(SERVICES.purgatory, deadline_s)
        ran: list[Any] = []
        operation.add_done_callback(ran.append)

        def complete(request: DescribeClusterRequest, context: RequestContext) -> Any:
            operation.force_complete()
            assert not ran  # the request is still being handled
            if is_refused:
                raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return DescribeClusterResponse()

        handle(complete)
        Dispatcher(SERVICES)(memoryview(request_frame(DescribeClusterRequest(), 1)), PEER)
        assert ran == [operation]

    asyncio.run(scenario())


def test_bytes_after_the_request_are_ignored_as_kafka_does() -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    answer = dispatch(request_frame(request, 3) + b"more")
    assert read_answer(answer, request, 3).error_code == 0


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_unknown_version_of_api_versions_is_answered_in_version_0(version: int) -> None:
    header_version = 2 if version >= 3 else 1
    tagged = b"\0" if header_version == 2 else b""
    frame = b"\0\x12" + version.to_bytes(2, "big", signed=True) + (77).to_bytes(4, "big")
    answer = dispatch(frame + b"\xff\xff" + tagged + b"whatever a newer version may hold")
    response = read_answer(answer, ApiVersionsRequest(), 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [
        (18, 0, 4)
    ]


def test_version_that_is_not_served_closes_the_connection() -> None:
    frame = bytearray(request_frame(DescribeClusterRequest(), 1))
    frame[2:4] = (9).to_bytes(2, "big")
    with pytest.raises(DecodeError, match="DESCRIBE_CLUSTER v9 is not served, versions 0 to 1 are"):
        dispatch(bytes(frame))


def test_api_that_is_not_served_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.api.dispatch.TABLE", {})
    monkeypatch.setattr("broker.api.responses.TABLE", {})
    with pytest.raises(DecodeError, match="FETCH is not served"):
        dispatch(request_frame(FetchRequest(), 12))


def test_unknown_api_closes_the_connection() -> None:
    with pytest.raises(DecodeError, match="unknown API key 999"):
        dispatch((999).to_bytes(2, "big") + bytes(20))


def test_request_that_cannot_be_decoded_is_named() -> None:
    frame = request_frame(DescribeClusterRequest(), 1)[:-1]
    with pytest.raises(DecodeError, match=r"^DescribeClusterRequest v1: "):
        dispatch(frame)


@pytest.mark.parametrize("row", ROWS)
def test_every_api_can_say_in_every_version_that_it_failed(row: Row) -> None:
    for version in range(row.versions[0], row.versions[1] + 1):
        said = []
        for sample in samples()[row.request, version][1:]:  # the first sample is an empty request
            request = decode(row.request, sample.data, version)
            response = row.error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR)
            assert encode(response, version)
            said += error_codes(response)
        assert set(said) <= {ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_the_request_of_its_key_and_versions_that_are_declared(row: Row) -> None:
    assert row.request is request_class(row.api_key)
    lowest, highest = row.request.versions
    assert lowest <= row.versions[0] <= row.versions[1] <= highest


@pytest.mark.parametrize("row", ROWS)
def test_kind_of_a_handler_is_what_its_function_returns(row: Row) -> None:
    returned = str(row.handle.__annotations__["return"])
    waits = inspect.iscoroutinefunction(row.handle) or returned.startswith(AWAITABLE)
    may_wait = not waits and any(kind in returned for kind in ("Awaitable", "Deferred"))
    assert row.kind is (Kind.DEFERRED if waits else Kind.EITHER if may_wait else Kind.IMMEDIATE)


def test_two_rows_for_one_api_are_refused() -> None:
    row = TABLE[ApiKey.METADATA]
    with pytest.raises(ValueError, match="METADATA has two rows"):
        table._table([row, row])


@pytest.mark.parametrize("version", range(5))
def test_api_versions_is_the_table(version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = read_answer(dispatch(request_frame(request, version)), request, version)
    assert response.error_code == 0
    told = [(api.api_key, api.min_version, api.max_version) for api in response.api_keys]
    assert told == sorted((row.api_key, *row.versions) for row in TABLE.values())


@pytest.mark.parametrize(
    ("name", "software_version", "code"),
    [
        ("apache-kafka-java", "3.9.1", ErrorCode.NONE),
        ("a", "1", ErrorCode.NONE),
        ("", "1", ErrorCode.INVALID_REQUEST),
        ("a", "", ErrorCode.INVALID_REQUEST),
        ("-a", "1", ErrorCode.INVALID_REQUEST),
        ("a-", "1", ErrorCode.INVALID_REQUEST),
        ("a b", "1", ErrorCode.INVALID_REQUEST),
        ("a", "1.0\n", ErrorCode.INVALID_REQUEST),
        ("ключ", "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_client_that_introduces_itself_with_nonsense_gets_invalid_request(
    name: str, software_version: str, code: ErrorCode
) -> None:
    request = ApiVersionsRequest(
        client_software_name=name, client_software_version=software_version
    )
    response = read_answer(dispatch(request_frame(request, 3)), request, 3)
    assert response.error_code == code
    assert bool(response.api_keys) == (code is ErrorCode.NONE)


def test_old_client_is_not_asked_for_its_name() -> None:
    response = read_answer(
        dispatch(request_frame(ApiVersionsRequest(), 2)), ApiVersionsRequest(), 2
    )
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == 0
