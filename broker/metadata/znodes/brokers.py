"""/brokers/ids and /brokers/seqid: the registered brokers, and the source of generated ids."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from broker.metadata.znodes.json_text import decode_json, encode_json, reading, scala_immutable_map

BROKERS_PATH = "/brokers"
BROKER_IDS_PATH = "/brokers/ids"
BROKER_SEQUENCE_ID_PATH = "/brokers/seqid"
"""Kafka sets its data to increment its version: that plus reserved.broker.max.id is a new id."""

_ENDPOINT = re.compile(r"(?P<name>.+)://(?:\[(?P<ipv6>.*)\]|(?P<host>[^\[\]]*)):(?P<port>-?\d+)")
_PLAINTEXT = "PLAINTEXT"


class Endpoint(NamedTuple):
    """An advertised listener: its name, address and security protocol."""

    listener_name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener_name}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerIdZnode:
    """/brokers/ids/N: a live broker; ephemeral, its czxid is the broker epoch.

    Version 1 has one host and port, 2 endpoints named by their protocols, 3 the rack, 4 listener
    names with a map to their protocols (KIP-103), 5 the features (KIP-584).
    """

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    timestamp: int = 0
    jmx_port: int = -1
    features: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    version: int = 5

    RACK_SINCE: ClassVar[int] = 3
    LISTENER_NAMES_SINCE: ClassVar[int] = 4
    FEATURES_SINCE: ClassVar[int] = 5

    @staticmethod
    def path(broker_id: int) -> str:
        """The path of a broker's registration."""
        return f"{BROKER_IDS_PATH}/{broker_id}"

    def encode(self) -> bytes:
        """As Kafka writes it. Host and port are for clients of version 1."""
        plain = next((e for e in self.endpoints if e.security_protocol == _PLAINTEXT), None)
        fields: dict[str, Any] = {}
        if self.version >= self.FEATURES_SINCE:
            fields["features"] = self.features
        if self.version >= self.LISTENER_NAMES_SINCE:
            protocols = {e.listener_name: e.security_protocol for e in self.endpoints}
            fields["listener_security_protocol_map"] = scala_immutable_map(protocols)
        fields["endpoints"] = [str(endpoint) for endpoint in self.endpoints]
        if self.version >= self.RACK_SINCE and self.rack is not None:
            fields["rack"] = self.rack
        fields["jmx_port"] = self.jmx_port
        fields["port"] = plain.port if plain else -1
        fields["host"] = plain.host if plain else None
        fields["version"] = self.version
        fields["timestamp"] = str(self.timestamp)
        return encode_json(fields)

    @classmethod
    def decode(cls, broker_id: int, data: bytes | None) -> "BrokerIdZnode":
        """The registration, of any version from 1 on."""
        path = cls.path(broker_id)
        fields = decode_json(path, data)
        with reading(path, data):
            if fields["version"] < 1:
                raise ValueError("unsupported version")
            return cls(
                broker_id=broker_id,
                endpoints=_endpoints(fields),
                rack=fields.get("rack"),
                timestamp=int(fields.get("timestamp", 0)),
                jmx_port=int(fields["jmx_port"]),
                features=fields.get("features") or {},
                version=int(fields["version"]),
            )


def _endpoints(fields: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    if fields["version"] == 1:
        return (Endpoint(_PLAINTEXT, fields["host"], int(fields["port"]), _PLAINTEXT),)
    protocols = fields.get("listener_security_protocol_map")
    return tuple(_endpoint(text, protocols) for text in fields["endpoints"])


def _endpoint(text: str, protocols: Mapping[str, str] | None) -> Endpoint:
    found = _ENDPOINT.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not an endpoint")
    name = found["name"]
    protocol = name if protocols is None else protocols[name]
    return Endpoint(name, found["ipv6"] or found["host"] or "", int(found["port"]), protocol)
