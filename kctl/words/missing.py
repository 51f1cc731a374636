"""What to say of something that is not there: what it may have been meant to be."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from kctl.errors import CliError


def no_such(kind: str, missing: Sequence[str], known: Iterable[str]) -> CliError:
    """`kind` is `topic` or `group`; the hint names what is spelled much like the first missing."""
    names = ", ".join(map(repr, missing))
    listed = f"kctl {kind}s list shows those there are"
    similar = get_close_matches(missing[0], list(known), n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(similar)}? {listed}" if similar else listed
    return CliError(f"no such {kind}: {names}", hint)
