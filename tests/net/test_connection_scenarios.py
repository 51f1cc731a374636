"""The table of connection states: scripts in tests/scenarios/connection-*.txt, and its invariants.

Each step of a script is a list of commands, `----`, and what happened. The first command opens a
connection (`open`, `open tls`, `open sasl`, `open tls sasl`); the others are events.
`pytest --rewrite` writes what happens now: read the diff.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.net.connection_state import (
    TRANSITIONS,
    ConnectionState,
    Event,
    InvalidTransition,
    State,
)

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios").glob("connection-*.txt"))


class Script:
    """Runs commands on one connection state."""

    def __init__(self) -> None:
        self.state = ConnectionState()

    def run(self, command: str) -> str:
        """Run a command and describe what happened."""
        name, *options = command.split()
        if name == "open":
            self.state = ConnectionState(
                needs_handshake="tls" in options, needs_authentication="sasl" in options
            )
            return f"{command}: {self._describe()}"
        try:
            self.state.on(Event[name.upper()])
        except InvalidTransition as error:
            return f"{command}: invalid ({error})"
        return f"{command}: {self._describe()}"

    def _describe(self) -> str:
        return self.state.current.name + (", reads" if self.state.may_read else "")


def play(text: str) -> str:
    """The script again, with what happens now."""
    script, played = Script(), []
    for block in text.strip().split("\n\n"):
        head = block.split("\n----")[0]
        commands = [line for line in head.splitlines() if not line.startswith("#")]
        played.append("\n".join([head, "----", *map(script.run, commands)]))
    return "\n\n".join(played) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, request: Any) -> None:
    expected = path.read_text(encoding="utf-8")
    played = play(expected)
    if request.config.getoption("--rewrite"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == expected


def test_there_are_scenarios() -> None:
    assert SCENARIOS


def test_every_state_has_a_row_and_can_be_closed() -> None:
    assert set(TRANSITIONS) == set(State)
    for row in TRANSITIONS.values():
        assert row[Event.LOST] is State.CLOSED
        assert row[Event.CLOSE] in (State.CLOSING, State.CLOSED)


@given(
    needs_handshake=st.booleans(),
    needs_authentication=st.booleans(),
    events=st.lists(st.sampled_from(Event), max_size=30),
)
def test_no_order_of_events_lets_an_unauthenticated_connection_reach_the_dispatcher(
    needs_handshake: bool, needs_authentication: bool, events: list[Event]
) -> None:
    state = ConnectionState(
        needs_handshake=needs_handshake, needs_authentication=needs_authentication
    )
    is_authenticated = not needs_authentication
    for event in events:
        before = state.current
        try:
            state.on(event)
        except InvalidTransition:
            assert state.current is before
            continue
        is_authenticated |= event is Event.AUTHENTICATED
        if event is Event.REAUTHENTICATE:
            is_authenticated = False
        assert state.current is not State.READING or is_authenticated
        assert state.may_read == (state.current in (State.AUTHENTICATING, State.READING))
        assert before is not State.CLOSED or state.current is State.CLOSED
