"""`kctl users set` and `delete`."""

from typing import Annotated

import typer

from broker.security.scram import MIN_ITERATIONS, ScramMechanism
from kctl.admin.users import new_credential
from kctl.cli.confirmation import (
    DryRun,
    Plan,
    Yes,
    confirm_plan,
    refuse_if_read_only,
    show_dry_run,
)
from kctl.cli.missing import no_such
from kctl.cli.options import KafkaText, Session, session_of
from kctl.cli.security.new_password import PasswordFile, PasswordVariable, new_password
from kctl.commands.users.options import CredentialStore, Directory, Mechanisms, UserName, ZooKeeper
from kctl.model.outcomes import Outcome
from kctl.model.users import DEFAULT_ITERATIONS, MAX_ITERATIONS
from kctl.views.kafka_text.quotas import user_completion_lines
from kctl.views.outcomes import outcome_columns, show_outcomes
from kctl.views.users import CHANGE_COLUMNS, change_row

RESULTS = outcome_columns("user")

Iterations = Annotated[
    int,
    typer.Option(
        "--iterations",
        min=MIN_ITERATIONS,
        max=MAX_ITERATIONS,
        help="Iterations of the hash; more make a stolen credential harder to guess.",
    ),
]


def set_user(
    ctx: typer.Context,
    user: UserName,
    mechanisms: Mechanisms = None,
    iterations: Iterations = DEFAULT_ITERATIONS,
    password_file: PasswordFile = None,
    password_env: PasswordVariable = None,
    zookeeper: ZooKeeper = None,
    directory: Directory = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
) -> None:
    """Create a user, or change the password of one.

    Without --mechanism the credential is for SCRAM-SHA-512. The brokers get a salted hash, never
    the password.
    """
    session = session_of(ctx)
    store = CredentialStore(session, zookeeper, directory)
    if not dry_run:
        refuse_if_read_only(session, RESULTS)
    chosen = list(dict.fromkeys(mechanisms or [ScramMechanism.SHA_512]))
    password = "" if dry_run else new_password(user, password_file, password_env)
    credentials = [new_credential(user, one, password, iterations) for one in chosen]
    before = {one.mechanism: one for one in store.read([user])}
    rows = [change_row(before.get(new.mechanism), new) for new in credentials]
    plan = Plan(f"Replace the password of {user}?", rows, CHANGE_COLUMNS, "user", RESULTS)
    if dry_run:
        show_dry_run(session, plan)
        return
    if any(new.mechanism in before for new in credentials):
        confirm_plan(session, plan, yes=yes, dry_run=False)
    _show(session, store, store.write(credentials), "set", as_kafka=bool(text_format))


def delete_user(
    ctx: typer.Context,
    user: UserName,
    mechanisms: Mechanisms = None,
    zookeeper: ZooKeeper = None,
    directory: Directory = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
) -> None:
    """Delete the credentials of a user: all of them, or those of some mechanisms.

    Its ACLs and quotas are kept.
    """
    session = session_of(ctx)
    store = CredentialStore(session, zookeeper, directory)
    wanted = [one.value for one in mechanisms or ScramMechanism]
    found = [one for one in store.read([user]) if one.mechanism in wanted]
    if not found:
        raise no_such("user", [user], {one.user for one in store.read()})
    rows = [change_row(old, None) for old in found]
    plan = Plan(f"Delete the credentials of {user}?", rows, CHANGE_COLUMNS, "user", RESULTS)
    if confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        outcomes = store.write(deleted=found)
        _show(session, store, outcomes, "deleted", as_kafka=bool(text_format))


def _show(
    session: Session, store: CredentialStore, outcomes: list[Outcome], done: str, *, as_kafka: bool
) -> None:
    if as_kafka and not any(one.error for one in outcomes):
        through_zookeeper = store.place is not None
        for one in outcomes:
            session.out.lines(user_completion_lines(one.name, through_zookeeper=through_zookeeper))
        return
    show_outcomes(session.out, outcomes, "user", done)
