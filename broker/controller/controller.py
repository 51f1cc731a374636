"""The controller: one broker of the cluster decides for all. This is its outside on every broker.

Everything happens as an event of one queue, in order: requests, watches, answers of brokers,
elections. While another broker is the controller, requests are refused with NOT_CONTROLLER. What an
elected controller does is in `active`; it is built anew at each election.

An expired session ends the controllership on the spot: nothing is decided in an old epoch. The
broker takes part in the next election when it has registered again (`rejoined`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.config.topic import TopicConfig
from broker.controller.active import ActiveController
from broker.controller.channels import (
    Channel,
    ChannelManager,
    Connect,
    LocalBroker,
    LocalChannel,
    RemoteChannel,
)
from broker.controller.context import ControllerContext
from broker.controller.elections import ElectionType
from broker.controller.elector import ElectedEpoch, Elector, FairElector, FirstElector
from broker.controller.event_queue import EventQueue
from broker.controller.fenced_store import ControllerMoved, FencedStore
from broker.controller.producer_id_blocks import allocate_block
from broker.controller.request_batch import Sender
from broker.controller.term import Term
from broker.controller.topic_admin import CreatedTopic, NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import SessionExpired, StoreError
from broker.metadata.store import EventKind, MetadataStore, Watch, WatchEvent
from broker.metadata.znodes.controller import ControllerZnode
from broker.metadata.znodes.topics import ReplicaAssignment
from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from broker.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from broker.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from broker.protocol.messages.stop_replica import StopReplicaResponse

logger = logging.getLogger(__name__)

T = TypeVar("T")

_FAILED_ELECTION_PAUSE_S = 1.0
"""A controller that failed at once would fail again at once, somewhere: not as fast as can be."""


class Controller:
    """What this broker does in the matter of controlling; see the module."""

    def __init__(
        self,
        store: MetadataStore,
        configs: DynamicConfig,
        local: LocalBroker,
        connect: Connect,
        clock: Clock,
    ) -> None:
        self._store = store
        self._configs = configs
        self._local = local
        self._connect = connect
        self._queue = EventQueue()
        self._elector = self._make_elector(clock)
        self._active: ActiveController | None = None
        self._elected: ElectedEpoch | None = None
        self._is_registered = False
        """Whether this broker may be elected. Not between an expired session and `rejoined`."""
        self._watch: Watch | None = None
        configs.on_topic_change(self._topic_config_changed)
        configs.on_broker_change(self._broker_config_changed)

    def _make_elector(self, clock: Clock) -> Elector:
        broker_id = self._configs.broker_id
        if self._configs.static.controller_election == "fair":
            return FairElector(self._store, broker_id, clock, self._stand_for_election)
        return FirstElector(self._store, broker_id, clock)

    # From beginning to end

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller."""
        return self._active is not None

    @property
    def epoch(self) -> int:
        """The controller epoch, of the controller that this broker is."""
        return self._require().term.epoch

    async def start(self) -> None:
        """Stand for election; the broker must be registered.

        If it is elected, this returns when it leads and knows what it has to.
        """
        self._queue.start()
        self._is_registered = True
        self._store.session.on_expired(self._expired)
        self._watch = self._store.watch_data(ControllerZnode.PATH, self._controller_changed)
        await self._queue.call("startup", self._elect)
        await self.flush()

    async def stop(self) -> None:
        """Resign, and take part in nothing any more."""
        self._is_registered = False
        if self._watch is not None:
            self._watch.cancel()
        await self._queue.stop()
        self._elector.close()
        elected = self._elected
        self._resign()
        if elected is not None:
            await self._elector.resign(elected)

    def rejoined(self) -> None:
        """The broker has registered in a new session: it may be elected again."""
        self._is_registered = True
        self._stand_for_election()

    async def flush(self) -> None:
        """Wait until this broker itself has done what the controller has told it so far."""
        if self._active is not None:
            await self._active.term.channels.flush(self._configs.broker_id)

    def _expired(self) -> None:
        self._is_registered = False
        self._queue.clear()
        self._resign()

    def _controller_changed(self, event: WatchEvent) -> None:
        if event.kind is EventKind.DELETED:
            self._stand_for_election()
        elif event.kind is not EventKind.SESSION_EXPIRED:
            self._queue.put("controller change", self._maybe_resign)

    def _stand_for_election(self) -> None:
        self._queue.put("reelect", self._reelect)

    async def _reelect(self) -> None:
        await self._maybe_resign()
        await self._elect()

    async def _maybe_resign(self) -> None:
        """Give up if another broker, or another session of this one, is the controller."""
        if self._active is None:
            return
        try:
            stat = await self._store.exists(ControllerZnode.PATH)
        except SessionExpired:
            stat = None  # and with the session the node
        if stat is None or stat.ephemeral_owner != self._store.session.id:
            self._resign()

    def _resign(self) -> None:
        active, self._active, self._elected = self._active, None, None
        if active is not None:
            active.close()
            logger.info("resigned controller epoch=%s", active.term.epoch)

    async def _elect(self) -> None:
        if self._active is not None or not self._is_registered:
            return
        try:
            elected = await self._elector.elect()
        except StoreError as error:
            logger.warning("standing for election failed: %s", error)
            asyncio.get_running_loop().call_later(
                _FAILED_ELECTION_PAUSE_S, self._stand_for_election
            )
            return
        if elected is not None:
            logger.info("elected controller epoch=%s", elected.epoch)
            await self._take_over(elected)

    async def _take_over(self, elected: ElectedEpoch) -> None:
        active = ActiveController(self._make_term(elected))
        self._active, self._elected = active, elected
        try:
            await active.start()
        except (ControllerMoved, SessionExpired) as error:
            logger.info("controllership was lost at once: %s", error)
            self._resign()
        except Exception:
            logger.exception("the elected controller failed, and gives up")
            self._resign()
            await asyncio.sleep(_FAILED_ELECTION_PAUSE_S)
            await self._elector.resign(elected)

    def _make_term(self, elected: ElectedEpoch) -> Term:
        config = self._configs.broker
        channels = ChannelManager(self._open_channel)
        sender = Sender(
            self._configs.broker_id,
            elected.epoch,
            config.inter_broker_listener,
            channels,
            self._leader_and_isr_answered,
            self._stop_replica_answered,
        )
        store = FencedStore(self._store, elected.epoch, elected.version)
        return Term(
            self._configs.broker_id,
            self._configs,
            store,
            ControllerContext(),
            channels,
            sender,
            self._later,
        )

    def _open_channel(self, broker_id: int, node: Node | None) -> Channel:
        if broker_id == self._configs.broker_id:
            return LocalChannel(self._local)
        timeout_s = self._configs.broker.controller_socket_timeout_ms / 1000
        return RemoteChannel(node, self._connect, timeout_s)

    # Events

    def _later(self, name: str, event: Callable[[], Awaitable[object]]) -> None:
        """Queue an event of the active controller; nothing if it has resigned by then."""
        active = self._active

        async def guarded() -> None:
            if active is not None and active is self._active:
                await self._until_fenced(active, event)

        self._queue.put(name, guarded)

    async def _until_fenced(
        self, active: ActiveController, event: Callable[[], Awaitable[object]]
    ) -> None:
        """Run an event that nobody waits for: that the term is over is then nobody's error."""
        try:
            await self._fenced(active, event)
        except ApiError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise

    async def _fenced(self, active: ActiveController, event: Callable[[], Awaitable[T]]) -> T:
        """Run an event; one that finds another controller in office ends this one's term."""
        try:
            result = await event()
        except (ControllerMoved, SessionExpired) as error:
            logger.info("controllership was lost: %s", error)
            if active is self._active:
                self._resign()
                self._stand_for_election()
            raise ApiError(ErrorCode.NOT_CONTROLLER) from error
        if active is self._active:
            active.watch_topics_and_brokers()
        return result

    async def _act(self, name: str, work: Callable[[ActiveController], Awaitable[T]]) -> T:
        """Do what a request asks for, in its turn."""
        self._require()

        async def event() -> T:
            active = self._require()
            return await self._fenced(active, lambda: work(active))

        return await self._queue.call(name, event)

    def check_active(self) -> None:
        """NOT_CONTROLLER if another broker is to be asked; Kafka says so before all else."""
        self._require()

    def _require(self) -> ActiveController:
        if self._active is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
        return self._active

    def _leader_and_isr_answered(self, broker_id: int, response: LeaderAndIsrResponse) -> None:
        active = self._active
        if active is not None:
            name = f"LeaderAndIsr {id(response)}"
            self._later(name, lambda: active.brokers.answered(broker_id, response))

    def _stop_replica_answered(
        self, broker_id: int, response: StopReplicaResponse, asked: frozenset[TopicPartition]
    ) -> None:
        active = self._active
        if active is not None and asked:
            name = f"StopReplica {id(response)}"
            self._later(name, lambda: active.replicas_deleted(broker_id, response, asked))

    def _topic_config_changed(self, topic: str, config: TopicConfig) -> None:
        active = self._active
        if active is not None and config.unclean_leader_election_enable:
            name = f"unclean election of {topic}"
            self._later(name, lambda: active.partitions.elect_missing(topic))

    def _broker_config_changed(self, old: BrokerConfig, new: BrokerConfig) -> None:
        active = self._active
        if (
            active is not None
            and new.unclean_leader_election_enable
            and not old.unclean_leader_election_enable
        ):
            self._later("unclean election", active.partitions.elect_missing)

    # Topics

    async def create_topic(self, new: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create a topic; ApiError says why it cannot be, and then nothing has changed."""
        created = await self._act(
            "create topic", lambda active: active.topics.create(new, validate_only=validate_only)
        )
        await self.flush()
        return created

    async def create_partitions(
        self,
        name: str,
        count: int,
        manual: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Let the topic have `count` partitions."""
        await self._act(
            "create partitions",
            lambda active: active.topics.grow(name, count, manual, validate_only=validate_only),
        )
        await self.flush()

    async def delete_topic(self, name: str, timeout_ms: int | None = None) -> None:
        """Take the topic away; returns when it is gone, or when that has to wait for a broker.

        Its files go after `file.delete.delay.ms`. REQUEST_TIMED_OUT if brokers take longer than
        that to answer; it goes all the same.
        """
        settled = await self._act("delete topic", lambda active: active.topics.delete(name))
        timeout_s = None if timeout_ms is None else max(timeout_ms, 0) / 1000
        done, _ = await asyncio.wait([settled], timeout=timeout_s)
        if not done:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
        await self.flush()

    # Replicas and leaders

    async def reassignments(self) -> dict[TopicPartition, ReplicaAssignment]:
        """The partitions whose replicas are being changed."""

        async def look(active: ActiveController) -> dict[TopicPartition, ReplicaAssignment]:
            context = active.term.context
            return {name: context.assignment(name) for name in sorted(context.reassigning)}

        return await self._act("list reassignments", look)

    async def reassign(self, name: TopicPartition, target: Sequence[int] | None) -> None:
        """Let a partition have the `target` replicas; None cancels what is under way."""
        await self._act("reassign", lambda active: active.reassigner.reassign(name, target))
        await self.flush()

    async def elect_leaders(
        self, names: Iterable[TopicPartition], election_type: ElectionType
    ) -> dict[TopicPartition, ApiError | None]:
        """Elect leaders; what was in the way of each, or None for a new leader."""
        outcomes = await self._act(
            "elect leaders", lambda active: active.elections.elect(names, election_type)
        )
        await self.flush()
        return outcomes

    # What brokers ask for

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Give leaders the ISRs they ask for."""
        return await self._act("alter partition", lambda active: active.isr_changes.alter(request))

    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        """Move leadership away from a broker that is about to stop."""
        remaining = await self._act(
            "controlled shutdown",
            lambda active: active.brokers.shut_down(request.broker_id, request.broker_epoch),
        )
        return ControlledShutdownResponse(
            remaining_partitions=[
                RemainingPartition(topic_name=name.topic, partition_index=name.partition)
                for name in remaining
            ]
        )

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        """Give a broker a block of producer ids."""
        block = await self._act(
            "allocate producer ids",
            lambda active: allocate_block(active.term, request.broker_id, request.broker_epoch),
        )
        return AllocateProducerIdsResponse(
            producer_id_start=block.first_producer_id,
            producer_id_len=block.last_producer_id - block.first_producer_id + 1,
        )
