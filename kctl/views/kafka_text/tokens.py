"""The output of kafka-delegation-tokens, with its missing line ends."""

from collections.abc import Sequence
from datetime import datetime

from kctl.model.tokens import DelegationToken

_HEADINGS = (
    *("TOKENID", "HMAC", "OWNER", "REQUESTER"),
    *("RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"),
)
_WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)


def creation_text(renewers: Sequence[str], max_lifetime_ms: int, token: DelegationToken) -> str:
    """What `--create` prints."""
    return (
        f"Calling create token operation with renewers :[{', '.join(renewers)}] , "
        f"max-life-time-period :{max_lifetime_ms}\n"
        f"Created delegation token with tokenId : {token.token_id}\n{_table([token])}"
    )


def description_text(owners: Sequence[str], tokens: Sequence[DelegationToken]) -> str:
    """What `--describe` prints."""
    whose = f"owners: [{', '.join(owners)}]" if owners else "current user."
    return (
        f"Calling describe token operation for {whose}\n"
        f"Total number of tokens : {len(tokens)}{_table(tokens)}"
    )


def change_text(operation: str, hmac: str, period_ms: int, expiry_ms: int) -> str:
    """What `--renew` and `--expire` print."""
    return (
        f"Calling {operation} token operation with hmac :{hmac} , {operation}-time-period "
        f":{period_ms}\nCompleted {operation} operation. New expiry date : {_date(expiry_ms)}"
    )


def _table(tokens: Sequence[DelegationToken]) -> str:
    return "".join([_line(_HEADINGS), *map(_token_line, tokens)])


def _token_line(token: DelegationToken) -> str:
    return _line(
        (
            token.token_id,
            token.hmac_text,
            token.owner,
            token.requester,
            f"[{', '.join(token.renewers)}]",
            *map(_date, (token.issue_ms, token.expiry_ms, token.max_ms)),
        )
    )


def _line(cells: Sequence[str]) -> str:
    padded = (f"{text:<{width}}" for text, width in zip(cells, _WIDTHS, strict=True))
    return f"\n{' '.join(padded)}\n"


def _date(timestamp_ms: int) -> str:
    """In the local time zone, as Java formats it."""
    return datetime.fromtimestamp(timestamp_ms / 1000).strftime("%Y-%m-%dT%H:%M")
