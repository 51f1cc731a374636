"""Text from clients cannot forge log lines."""

import logging
import re
import sys
from pathlib import Path

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from broker.server.log_format import EscapingFormatter, escape_control_characters
from tests.support.broker import RunningBroker, running_broker
from tests.support.wire import WireClient

FORGED = "evil\n[2026-01-01 00:00:00,000] CRITICAL forged line (broker)\x1b[2J"
LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (DEBUG|INFO|WARNING|ERROR) .* \(\S+\)")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain text, with ümläuts and 日本語", "plain text, with ümläuts and 日本語"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred\x9b0m\x7f", "\\x1b[31mred\\x9b0m\\x7f"),
        ("line\u2028separator \u202eright to left", "line\\u2028separator \\u202eright to left"),
    ],
)
def test_control_characters_are_escaped_and_nothing_else(text: str, escaped: str) -> None:
    assert escape_control_characters(text) == escaped


def test_exception_text_cannot_begin_a_line() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError:
        info = sys.exc_info()
    record = logging.LogRecord("broker", logging.ERROR, "", 0, "failed id=%s", (FORGED,), info)
    first, *others = EscapingFormatter().format(record).split("\n")
    assert LINE.fullmatch(first)
    assert all(line.startswith("    ") for line in others)
    assert not any("\x1b" in line for line in (first, *others))


def test_regression_group_id_with_a_newline_does_not_forge_a_log_line(tmp_path: Path) -> None:
    with running_broker(tmp_path, group_initial_rebalance_delay_ms=0) as broker:
        _join(broker, FORGED)
        broker.server.wait_for_line("evil")
        lines = broker.output().splitlines()
    assert all(LINE.fullmatch(line) for line in lines)


def _join(broker: RunningBroker, group_id: str) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        find = FindCoordinatorRequest(key=group_id, key_type=0)
        while wire.ask(find, 3).error_code:
            pass
        join = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        while wire.ask(join, 3).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
