"""Rows and columns of `kctl users`."""

from kctl.cli.tables import Column
from kctl.model.users import Credential, NewCredential
from kctl.views.config_changes import NOW, THEN

COLUMNS = [Column("user"), Column("mechanism"), Column("iterations", right=True)]
CHANGE_COLUMNS = [Column("user"), Column("mechanism", priority=0), NOW, THEN]


def credential_row(credential: Credential) -> dict[str, object]:
    """A credential as a row of COLUMNS."""
    return {
        "user": credential.user,
        "mechanism": credential.mechanism,
        "iterations": credential.iterations,
    }


def change_row(old: Credential | None, new: NewCredential | None) -> dict[str, object]:
    """A credential before and after a change, as a row of CHANGE_COLUMNS."""
    one = new or old
    return {
        "user": one.user if one else None,
        "mechanism": str(one.mechanism) if one else None,
        "now": f"iterations={old.iterations}" if old else None,
        "then": f"iterations={new.iterations}, new password" if new else None,
    }
