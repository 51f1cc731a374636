"""Throttles of a reassignment: set before it, taken back after it, whatever happens."""

import time
from collections.abc import Sequence

from broker.errors import ErrorCode
from kctl.admin.cluster import describe_cluster
from kctl.admin.configs import Config, Entity
from kctl.admin.connection import ask
from kctl.admin.reassignments import Moving
from kctl.admin.throttles import change_and_see, change_each, find_throttles, own_configs
from kctl.errors import CliError
from kctl.kafka_text.reassign import clearing_lines
from kctl.options import Session
from kctl.outcomes import Outcome
from kctl.plans.reassign_draft import Assignment
from kctl.plans.reassign_files import ReassignmentFile
from kctl.plans.throttles import (
    Changes,
    brokers_of,
    clearing,
    deletions_of,
    ends_of,
    merged,
    rate_changes,
    topic_changes,
    undoing,
)
from kctl.streaming.interrupts import undisturbed

RELEASE_ATTEMPTS = 3
RELEASE_PAUSE_S = 1.0
CLEAR_HINT = "kctl throttle list shows what is left, kctl throttle clear takes it away"


class Throttling:
    """The throttles that one run has set.

    Invariant: from before the first change is sent on, `_undo` undoes all that was or may have
    been changed; whatever interrupts a run, `release` takes everything back.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._undo: Changes = {}
        self._known: dict[Entity, list[Config]] = {}
        """Settings as they were when an entity was met first. They are not looked up again:
        brokers learn of changes one after the other, and a throttle of this very run, just
        deleted, could be read back as something to restore."""

    def set(
        self,
        wanted: ReassignmentFile,
        moving: Moving,
        current: Assignment,
        *,
        rate: int | None,
        log_dirs_rate: int | None = None,
    ) -> None:
        """Throttle what moves and what is about to; CliError, and no throttle, if refused."""
        changes: Changes = {}
        if rate is not None:
            ends = ends_of(moving, wanted.replicas, current)
            changes = merged(topic_changes(ends), rate_changes(brokers_of(ends), rate))
        if log_dirs_rate is not None:
            brokers = {broker for _, broker in wanted.log_dirs}
            changes = merged(changes, rate_changes(brokers, None, log_dirs_rate))
        try:
            self._apply(changes)
        except BaseException:  # Ctrl-C too: a part may have been set
            self.release()
            raise

    def release(self) -> list[Outcome]:
        """Take all of them back, undisturbed; those that could not be are given back."""
        with undisturbed():
            left = release(self._session, self._undo)
        self._undo = {}
        return left

    def _apply(self, changes: Changes) -> None:
        new = [entity for entity in changes if entity not in self._known]
        if new:
            self._known |= ask(self._session, lambda client: own_configs(client, new))
        self._undo = undoing(changes, self._known)
        outcomes = ask(self._session, lambda client: change_each(client, changes))
        if failed := [one for one in outcomes if one.error]:
            raise CliError(
                f"the throttle could not be set: {failed[0].name}: {failed[0].reason}",
                "nothing was moved",
            )


def release(session: Session, undo: Changes) -> list[Outcome]:
    """Take throttles back, and see that they are gone; those that are not are given back.

    A broker may be on its way up again, so it is tried some times. Never raises: it is what a run
    ends with, whatever has happened before.
    """
    left: list[Outcome] = []
    for attempt in range(RELEASE_ATTEMPTS):
        if not undo:
            return []
        if attempt:
            time.sleep(RELEASE_PAUSE_S)
        left = _release_once(session, undo)
        names = {one.name for one in left}
        undo = {entity: some for entity, some in undo.items() if str(entity) in names}
    for one in left:
        session.out.note(f"the throttle of {one.name} is still set: {one.reason}; {CLEAR_HINT}")
    return left


def _release_once(session: Session, undo: Changes) -> list[Outcome]:
    try:
        outcomes = ask(session, lambda client: change_and_see(client, undo))
    except CliError as error:
        failed = ErrorCode.REQUEST_TIMED_OUT
        return [Outcome(str(entity), failed, error.message) for entity in undo]
    return [one for one in outcomes if one.error]


def clear_leaked(session: Session) -> None:
    """Delete the throttles that nothing needs any more, and say so."""
    leaked = [throttle for throttle in ask(session, find_throttles) if throttle.leaked]
    if leaked:
        left = release(session, deletions_of(leaked))
        session.out.note(f"cleared {len(leaked) - len(left)} throttles")


def clear_as_kafka_does(session: Session, wanted: Assignment) -> None:
    """Delete all throttles of all brokers and of the plan's topics, in the words of the tool."""
    cluster = ask(session, describe_cluster)
    brokers = [broker.id for broker in cluster.brokers]
    brokers += [broker for replicas in wanted.values() for broker in replicas]
    topics = [partition.topic for partition in wanted]
    session.out.lines(clearing_lines(brokers, topics))
    outcomes: Sequence[Outcome] = ask(
        session, lambda client: change_each(client, clearing(set(brokers), set(topics)))
    )
    if failed := [one for one in outcomes if one.error]:
        raise CliError(f"{failed[0].name}: {failed[0].reason}", CLEAR_HINT)
