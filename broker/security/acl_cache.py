"""All ACLs of a cluster in memory, found by the resource that they apply to.

The number of ACLs does not matter for a look-up: literal patterns are found by name, prefixed ones
by each of the lengths that prefixes have.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from broker.security.acls import (
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    PatternType,
    ResourcePattern,
    ResourceType,
)

_LITERAL, _PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


class AclCache:
    """The entries of each pattern.

    Field `_entries`: by pattern. Invariant: no pattern without entries.
    Field `_prefix_lengths`: how many prefixed patterns of each type have a name of this length.
    """

    def __init__(self) -> None:
        self._entries: dict[ResourcePattern, tuple[AccessControlEntry, ...]] = {}
        self._prefix_lengths: dict[ResourceType, Counter[int]] = {}

    def __iter__(self) -> Iterator[AclBinding]:
        for pattern, entries in self._entries.items():
            for entry in entries:
                yield AclBinding(pattern, entry)

    @property
    def patterns(self) -> Iterable[ResourcePattern]:
        """The patterns that have entries."""
        return self._entries.keys()

    def entries(self, pattern: ResourcePattern) -> tuple[AccessControlEntry, ...]:
        """The entries of one pattern."""
        return self._entries.get(pattern, ())

    def update(self, pattern: ResourcePattern, entries: Sequence[AccessControlEntry]) -> None:
        """Replace the entries of a pattern."""
        was_known = pattern in self._entries
        if entries:
            self._entries[pattern] = tuple(entries)
        else:
            self._entries.pop(pattern, None)
        if pattern.pattern_type is _PREFIXED and was_known != bool(entries):
            lengths = self._prefix_lengths.setdefault(pattern.resource_type, Counter())
            lengths[len(pattern.name)] += 1 if entries else -1
            if not lengths[len(pattern.name)]:
                del lengths[len(pattern.name)]

    def matching(self, resource_type: ResourceType, name: str) -> list[AccessControlEntry]:
        """Every entry that applies to a resource."""
        found: list[AccessControlEntry] = []
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                found += self.entries(ResourcePattern(resource_type, name[:length], _PREFIXED))
        found += self.entries(ResourcePattern(resource_type, WILDCARD, _LITERAL))
        if name != WILDCARD:
            found += self.entries(ResourcePattern(resource_type, name, _LITERAL))
        return found
