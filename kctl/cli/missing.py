"""Errors about things that do not exist, with suggestions."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from kctl.cli.errors import CliError


def no_such(kind: str, missing: Sequence[str], known: Iterable[str]) -> CliError:
    """`kind` is `topic` or `group`; the hint suggests names similar to the first missing one."""
    names = ", ".join(map(repr, missing))
    listed = f"kctl {kind}s list shows the {kind}s"
    similar = get_close_matches(missing[0], list(known), n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(similar)}? {listed}" if similar else listed
    return CliError(f"no such {kind}: {names}", hint)


def no_such_broker(missing: Iterable[int], known: Iterable[int]) -> CliError:
    """Broker ids that are not in the cluster."""
    ids = ", ".join(map(str, sorted(missing)))
    return CliError(
        f"no such broker: {ids}", f"the cluster has brokers {', '.join(map(str, sorted(known)))}"
    )
