"""`ssl.cipher.suites`: Java's names of cipher suites, which are IANA's, as OpenSSL names them.

TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256  →  ECDHE-RSA-AES128-GCM-SHA256
TLS_RSA_WITH_AES_256_CBC_SHA           →  AES256-SHA
TLS_AES_256_GCM_SHA384                 TLS 1.3; the same name
"""

import re
from typing import Final

TLS13_SUITES: Final = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    }
)
_BEFORE_TLS13: Final = re.compile(r"(?:TLS|SSL)_(?P<exchange>\w+?)_WITH_(?P<cipher>\w+)")


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2 and before; OpenSSL's own names stay as they are."""
    found = _BEFORE_TLS13.fullmatch(suite)
    if not found:
        return suite
    exchange = "" if found["exchange"] == "RSA" else found["exchange"].replace("_", "-") + "-"
    cipher = re.sub(r"AES_(128|256)", r"AES\1", found["cipher"]).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return exchange + cipher.replace("_", "-")
