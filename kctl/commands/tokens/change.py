"""`kctl tokens renew` and `expire`."""

from base64 import b64encode
from typing import Annotated

import typer

from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.tokens import expire_token, renew_token
from kctl.cli.confirmation import DryRun, Plan, Yes, confirm_plan, refuse_if_read_only
from kctl.cli.options import KafkaText, session_of
from kctl.cli.times import iso_time
from kctl.commands.tokens.options import HmacFile, TokenId, hmac_of, parse_period, require_token
from kctl.views.kafka_text.tokens import change_text
from kctl.views.tokens import EXPIRED_COLUMNS, EXPIRY_COLUMNS

CHECK = "kctl tokens list"


def renew(
    ctx: typer.Context,
    token_id: TokenId = None,
    hmac_file: HmacFile = None,
    period: Annotated[
        str,
        typer.Option(
            "--period",
            "--renew-time-period",
            metavar="DURATION",
            help="Valid for this long from now, e.g. 1d, or milliseconds; -1: the brokers' "
            "default.",
        ),
    ] = "-1",
    text_format: KafkaText = None,
) -> None:
    """Renew a delegation token, up to its longest lifetime."""
    session = session_of(ctx)
    require_token(token_id, hmac_file)
    refuse_if_read_only(session, EXPIRY_COLUMNS)
    period_ms = parse_period(period, "--period")
    hmac = ask(session, lambda client: hmac_of(client, token_id, hmac_file))
    expiry_ms = ask(session, lambda client: renew_token(client, hmac, period_ms), check=CHECK)
    if text_format:
        session.out.text(change_text("renew", b64encode(hmac).decode(), period_ms, expiry_ms))
        return
    session.out.value("expiry", iso_time(expiry_ms))


def expire(
    ctx: typer.Context,
    token_id: TokenId = None,
    hmac_file: HmacFile = None,
    period: Annotated[
        str,
        typer.Option(
            "--period",
            "--expiry-time-period",
            metavar="DURATION",
            help="Expire it after this time, e.g. 10m, or milliseconds; -1: now.",
        ),
    ] = "-1",
    yes: Yes = False,
    dry_run: DryRun = False,
    text_format: KafkaText = None,
) -> None:
    """Expire a delegation token, now or later; clients can then no longer log in with it."""
    session = session_of(ctx)
    require_token(token_id, hmac_file)
    period_ms = parse_period(period, "--period")

    async def find(client: Client) -> bytes:
        return await hmac_of(client, token_id, hmac_file)

    hmac = ask(session, find)
    when = "now" if period_ms < 0 else f"in {period_ms} ms"
    row = {"token_id": token_id or "(by its HMAC)", "expires": when}
    plan = Plan("Expire this token?", [row], EXPIRED_COLUMNS, "token_id", EXPIRY_COLUMNS)
    if not confirm_plan(session, plan, yes=yes, dry_run=dry_run):
        return
    expiry_ms = ask(session, lambda client: expire_token(client, hmac, period_ms), check=CHECK)
    if text_format:
        session.out.text(change_text("expire", b64encode(hmac).decode(), period_ms, expiry_ms))
        return
    session.out.value("expiry", iso_time(expiry_ms))
