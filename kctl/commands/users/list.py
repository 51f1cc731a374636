"""`kctl users list`."""

from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.quotas import describe_quotas
from kctl.admin.users import list_credentials
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.missing import no_such
from kctl.cli.options import KafkaText, session_of
from kctl.commands.users.options import CredentialStore, Directory, ZooKeeper
from kctl.model.quotas import EntityPart, PartType, QuotaEntry
from kctl.model.users import Credential
from kctl.views.kafka_text.quotas import credential_lines, quota_lines
from kctl.views.users import COLUMNS, credential_row


def list_users(
    ctx: typer.Context,
    users: Annotated[
        list[str] | None,
        typer.Argument(metavar="USER…", help="Only these users.", show_default=False),
    ] = None,
    zookeeper: ZooKeeper = None,
    directory: Directory = None,
    text_format: KafkaText = None,
) -> None:
    """List users with SCRAM credentials, their mechanisms and iterations.

    With --format kafka, the output of kafka-configs for users: quotas too.
    """
    session = session_of(ctx)
    names = list(dict.fromkeys(users or ()))
    store = CredentialStore(session, zookeeper, directory)
    if text_format:
        if store.place is not None or len(names) > 1:
            raise CliError(
                "--format kafka describes one user or all users, through brokers",
                "omit --zookeeper and --directory, and name one user",
                ExitStatus.USAGE,
            )
        part = EntityPart(PartType.USER, names[0]) if names else PartType.USER

        async def query(client: Client) -> tuple[list[QuotaEntry], list[Credential]]:
            quotas = await describe_quotas(client, [part], strict=True)
            return quotas, await list_credentials(client, names)

        quotas, credentials = ask(session, query)
        session.out.lines([*quota_lines(quotas), *credential_lines(credentials)])
        return
    found = store.read(names)
    if missing := [name for name in names if name not in {one.user for one in found}]:
        raise no_such("user", missing, {one.user for one in store.read()})
    found.sort(key=lambda one: (one.user, one.mechanism))
    session.out.rows(map(credential_row, found), COLUMNS, name="user")
