"""Options of `kctl users`, and where credentials are stored: brokers, ZooKeeper or a directory."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from broker.security.scram import ScramMechanism
from kctl.admin.connection import ask
from kctl.admin.metadata_place import NothingThere, Place, zookeeper_place
from kctl.admin.user_znodes import read_credentials, users_of, write_credentials
from kctl.admin.users import alter_credentials, list_credentials
from kctl.cli.arguments.zookeeper import not_empty
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.options import Session
from kctl.model.outcomes import Outcome
from kctl.model.users import Credential, NewCredential

Mechanisms = Annotated[
    list[ScramMechanism] | None,
    typer.Option(
        "--mechanism",
        metavar="MECHANISM",
        case_sensitive=False,
        help="SCRAM-SHA-256 or SCRAM-SHA-512; can be repeated.",
    ),
]
UserName = Annotated[str, typer.Argument(metavar="USER", help="Name of the user.")]
ZooKeeper = Annotated[
    str | None,
    typer.Option(
        "-z",
        "--zookeeper",
        metavar="HOST:PORT,…/CHROOT",
        help="Write to this ZooKeeper: for the first users, before brokers start.",
        callback=not_empty,
    ),
]
Directory = Annotated[
    str | None,
    typer.Option(
        "--directory",
        metavar="DIR",
        help="First log directory of a stopped broker that stores its metadata itself.",
    ),
]


class CredentialStore:
    """Reads and writes credentials: through brokers, or in a metadata store directly."""

    def __init__(self, session: Session, zookeeper: str | None, directory: str | None) -> None:
        if zookeeper and directory:
            raise CliError("--zookeeper and --directory cannot be combined", "", ExitStatus.USAGE)
        self._session = session
        self.place: Place | None = None
        if zookeeper:
            self.place = zookeeper_place(zookeeper, session.timeout)
        elif directory:
            self.place = Place(directory, session.timeout)

    def read(self, users: Sequence[str] = ()) -> list[Credential]:
        """The credentials of these users; of all users if none are named."""
        if self.place is None:
            return ask(self._session, lambda client: list_credentials(client, users))
        try:
            return asyncio.run(read_credentials(self.place, users))
        except NothingThere:  # no broker has ever used it
            return []

    def write(
        self, upserted: Sequence[NewCredential] = (), deleted: Sequence[Credential] = ()
    ) -> list[Outcome]:
        """Set and delete credentials; the outcome of each user."""
        if self.place is None:
            return ask(
                self._session,
                lambda client: alter_credentials(client, upserted, deleted),
                check="kctl users list",
            )
        asyncio.run(write_credentials(self.place, upserted, deleted))
        return [Outcome(user) for user in users_of(upserted, deleted)]
