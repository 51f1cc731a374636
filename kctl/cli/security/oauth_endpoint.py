"""Access tokens from a file or from an OAuth token endpoint, as Java's login handler gets them."""

import base64
import json
import time
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.parse import quote_plus, unquote, urlsplit
from urllib.request import HTTPSHandler, Request, build_opener

from broker.security.tls import client_context
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.security.oauth import OAuthLogin
from kctl.cli.security.secrets import read_secret
from kctl.cli.security.stores import tls_settings

_FINAL_STATUSES: Final = frozenset((*range(400, 408), 409, 410, 411, 412, 413, 414, 415, 501, 505))
"""HTTP statuses after which another attempt is pointless; the list is Java's."""
_MAX_BYTES: Final = 1 << 20


def retrieve(login: OAuthLogin) -> str:
    """The token; CliError, which quotes no secret, if the response has no token."""
    url = urlsplit(login.endpoint_url or "")
    if url.scheme == "file":
        return read_secret(Path(unquote(url.path)), "sasl.oauthbearer.token.endpoint.url")
    if url.scheme not in ("https", "http"):
        raise CliError(
            f"sasl.oauthbearer.token.endpoint.url={login.endpoint_url} is not supported",
            "use https:, http: or file:",
            ExitStatus.USAGE,
        )
    return _token_in(_posted(login, _request(login)), login)


def _request(login: OAuthLogin) -> Request:
    client_id, secret = (_option(login, name) for name in ("clientId", "clientSecret"))
    if login.urlencode:
        client_id, secret = quote_plus(client_id), quote_plus(secret)
    credentials = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    scope = login.options.get("scope", "").strip()
    body = "grant_type=client_credentials" + (f"&scope={quote_plus(scope)}" if scope else "")
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {credentials}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    # The scheme was checked by the caller.
    return Request(login.endpoint_url or "", body.encode(), headers, method="POST")  # noqa: S310


def _option(login: OAuthLogin, name: str) -> str:
    value = login.options.get(name, "").strip()
    if not value:
        raise CliError(
            f"the token endpoint requires {name}",
            f'set {name}="…" in sasl.jaas.config',
            ExitStatus.USAGE,
        )
    return value


def _posted(login: OAuthLogin, request: Request) -> bytes:
    """The response; retried with growing pauses unless the error is permanent."""
    options = dict(login.options)
    tls = client_context(tls_settings(options, lambda _: None))
    opener = build_opener(HTTPSHandler(context=tls))
    deadline, pause_s = time.monotonic() + login.retry_for_s, login.retry_pause_s
    while True:
        try:
            with opener.open(request, timeout=login.connect_timeout_s) as response:
                return bytes(response.read(_MAX_BYTES))
        except HTTPError as error:
            with error:
                reason = f"status {error.code}{_explained(error.read(_MAX_BYTES))}"
            is_final = error.code in _FINAL_STATUSES
        except (OSError, HTTPException) as error:
            reason, is_final = str(getattr(error, "reason", error)), False
        if is_final or time.monotonic() + pause_s > deadline:
            raise CliError(
                f"no access token from {login.endpoint_url}: {reason}",
                "check the URL, clientId, clientSecret and scope",
            )
        time.sleep(pause_s)
        pause_s *= 2


def _explained(body: bytes) -> str:
    """The endpoint's explanation, which has no secrets (RFC 6749, section 5.2)."""
    try:
        found = json.loads(body)
        words = [found[key] for key in ("error", "error_description") if found.get(key)]
    except (ValueError, AttributeError, TypeError):
        return ""
    return f" ({': '.join(map(str, words))})" if words else ""


def _token_in(body: bytes, login: OAuthLogin) -> str:
    try:
        token = json.loads(body)["access_token"]
    except (ValueError, KeyError, TypeError):
        token = None
    if not isinstance(token, str) or not token.strip():
        raise CliError(
            f"the response of {login.endpoint_url} has no access_token",
            "check that it is an OAuth token endpoint",
        )
    return token.strip()
