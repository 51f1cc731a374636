"""The subject of a certificate as Java writes it: `X500Principal.getName()`, RFC 2253.

ACLs and `ssl.principal.mapping.rules` contain this text, so it must be the same to the letter: last
RDN first, keywords only for the nine attribute types of the RFC, every other type as
`OID=#<DER in hex>`.
"""

from typing import Final

from broker.security.der import OID, DerError, Element, oid_text, read_all, read_first

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString:
Java reads all of them as UTF-8."""

_ESCAPED: Final = ',=+<>#;"\\'
_SPACES: Final = " \r"
_VERSION_TAG: Final = 0xA0
_FIELDS_BEFORE_SUBJECT: Final = 4
"""Serial number, signature algorithm, issuer, validity."""


def subject_of(certificate: bytes) -> str:
    """The subject of a DER certificate; DerError if it is not a certificate."""
    name = subject_der(certificate)
    return ",".join(_relative_name(rdn) for rdn in reversed(read_all(name.content)))


def subject_der(certificate: bytes) -> Element:
    """The subject as it is encoded."""
    body = read_all(read_first(read_first(certificate).content).content)
    fields = [element for element in body if element.tag != _VERSION_TAG]
    if len(fields) <= _FIELDS_BEFORE_SUBJECT:
        raise DerError("not a certificate")
    return fields[_FIELDS_BEFORE_SUBJECT]


def _relative_name(rdn: Element) -> str:
    return "+".join(_attribute(*read_all(pair.content)) for pair in read_all(rdn.content))


def _attribute(kind: Element, value: Element) -> str:
    if kind.tag != OID:
        raise DerError("an attribute without type")
    oid = oid_text(kind.content)
    keyword = _KEYWORDS.get(oid)
    if keyword is None or value.tag not in _TEXT_TAGS:
        return f"{keyword or oid}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    inner = text.strip(_SPACES)
    start = text.index(inner) if inner else len(text)
    before, after = text[:start], text[start + len(inner) :]
    special = {char: f"\\{char}" for char in _ESCAPED} | {"\0": "\\00"}
    body = "".join(special.get(char, char) for char in inner)
    return "".join((*(f"\\{space}" for space in before), body, *(f"\\{s}" for s in after)))
