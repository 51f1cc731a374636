"""The health of a cluster: what was seen, and what is wrong with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kctl.model.cluster import BrokerFailure, Cluster
from kctl.model.log_dirs import LogDir
from kctl.model.topics import Topic


class Severity(StrEnum):
    """How bad a finding is."""

    CRITICAL = "critical"
    """Clients fail, or records can be lost with the next failure."""
    WARNING = "warning"
    """Clients work; redundancy or space is running out."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    severity: Severity
    check: str
    subject: str
    """`broker 3`, `topic orders`, `cluster`."""
    message: str
    hint: str
    """What to do, or which command shows more."""


@dataclass(frozen=True)
class ClusterState:
    """What was seen of a cluster at one time."""

    cluster: Cluster
    topics: Sequence[Topic]
    min_isr: Mapping[str, int] = field(default_factory=dict)
    """min.insync.replicas by topic; topics whose configs could not be read are missing."""
    log_dirs: Sequence[LogDir] = ()
    unanswered: Sequence[BrokerFailure] = ()
