"""Rows and columns of `kctl tokens`."""

from kctl.cli.tables import Column
from kctl.cli.times import iso_time
from kctl.model.tokens import DelegationToken

COLUMNS = [
    Column("token_id"),
    Column("owner"),
    Column("renewers"),
    Column("expiry", priority=1),
    Column("max_expiry", priority=3),
    Column("issued", wide=True),
    Column("requester", wide=True),
]
CREATED_COLUMNS = [*COLUMNS, Column("hmac")]
EXPIRY_COLUMNS = [Column("expiry")]
"""After a token was renewed or expired."""

EXPIRED_COLUMNS = [Column("token_id"), Column("expires")]


def token_row(token: DelegationToken, *, show_hmac: bool) -> dict[str, object]:
    """A token as a row of COLUMNS; its HMAC, a secret, only on demand."""
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "renewers": list(token.renewers),
        "expiry": iso_time(token.expiry_ms),
        "max_expiry": iso_time(token.max_ms),
        "issued": iso_time(token.issue_ms),
        "requester": token.requester or None,
        "hmac": token.hmac_text if show_hmac else None,
    }
