"""One manual page per command, in roff.

Only the plain man macros are used (.TH .SH .TP .PP .EX), which groff and mandoc both know.
"""

from collections.abc import Iterator

from kctl.cli.errors import ExitStatus
from kctl.cli.help import CommandHelp, ParameterHelp

ENVIRONMENT = {
    "KCTL_BOOTSTRAP_SERVERS": "Bootstrap servers; overridden by -b.",
    "KCTL_CONTEXT": "The context; overridden by --context.",
    "KCTL_COMMAND_CONFIG": "A client.properties file; overridden by --command-config.",
    "KCTL_CONFIG": "The file with the contexts; default is kctl/config.yaml in the user's "
    "configuration directory.",
    "KCTL_ZOOKEEPER": "ZooKeeper connect string; overridden by --zookeeper.",
    "KCTL_SECURITY_PROTOCOL": "Same as security.protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or "
    "SASL_SSL.",
    "KCTL_SASL_MECHANISM": "Same as sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or "
    "OAUTHBEARER.",
    "KCTL_SASL_USERNAME": "The SASL user name.",
    "KCTL_SASL_PASSWORD": "The SASL password; KCTL_SASL_PASSWORD_FILE names a file that "
    "contains it.",
    "KCTL_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": "URL that issues OAuth tokens.",
    "KCTL_SSL_TRUSTSTORE_LOCATION": "Trusted certificates (PEM, PKCS12 or JKS).",
    "KCTL_SSL_TRUSTSTORE_PASSWORD": "Password of the trust store; "
    "KCTL_SSL_TRUSTSTORE_PASSWORD_FILE names a file that contains it.",
    "KCTL_SSL_KEYSTORE_LOCATION": "Client certificate and private key (PEM, PKCS12 or JKS).",
    "KCTL_SSL_KEYSTORE_PASSWORD": "Password of the key store; KCTL_SSL_KEYSTORE_PASSWORD_FILE "
    "names a file that contains it.",
    "KCTL_SSL_KEY_PASSWORD": "Password of the private key; KCTL_SSL_KEY_PASSWORD_FILE names a "
    "file that contains it.",
    "KCTL_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM": "https checks the host name in the brokers' "
    "certificates (default); an empty value disables the check.",
    "KCTL_SCHEMA_REGISTRY_URL": "URL of the schema registry; overridden by --registry.",
    "KCTL_BASIC_AUTH_USER_INFO": "USER:PASSWORD for the schema registry; "
    "KCTL_BASIC_AUTH_USER_INFO_FILE names a file that contains it.",
    "KCTL_BEARER_AUTH_TOKEN": "Token for the schema registry; KCTL_BEARER_AUTH_TOKEN_FILE names "
    "a file that contains it.",
    "KCTL_ADMIN": "Admin ports of the brokers, for kctl top; overridden by --admin.",
    "KCTL_OUTPUT": "The output format; overridden by -o.",
    "KCTL_TIMEOUT": "The timeout in seconds; overridden by --timeout.",
    "KCTL_COLOR": "auto, always or never; overridden by --color.",
    "NO_COLOR": "Disables colours if set.",
}


def page_name(command: CommandHelp) -> str:
    """The name of the file, such as `kctl-brokers-list.1`."""
    return "-".join(command.path) + ".1"


def man_page(command: CommandHelp) -> str:
    """The text of the page."""
    return "\n".join(_page(command)) + "\n"


def _page(command: CommandHelp) -> Iterator[str]:
    title = "-".join(command.path)
    yield f'.TH {escape(title.upper())} 1 "" kctl "kctl manual"'
    yield from (".SH NAME", f"{escape(title)} \\- {escape(command.summary.rstrip('.'))}")
    yield from (".SH SYNOPSIS", f".B {escape(command.name)}")
    yield escape(command.usage.removeprefix(command.name).strip())
    yield from (".SH DESCRIPTION", escape(command.summary))
    for paragraph in filter(None, command.description.split("\n\n")):
        yield from (".PP", escape(paragraph))
    if command.subcommands:
        yield ".SH COMMANDS"
        for name, summary in command.subcommands:
            yield from (".TP", f".B {escape(name)}", escape(summary))
    yield from _parameters(command)
    yield from _examples(command)
    yield from _common_ending(command)


def _parameters(command: CommandHelp) -> Iterator[str]:
    if arguments := command.arguments():
        yield ".SH ARGUMENTS"
        for argument in arguments:
            yield from _parameter(argument)
    for title, options in command.panels().items():
        yield f".SH {escape(title.upper() or 'OPTIONS')}"
        for option in options:
            yield from _parameter(option)


def _parameter(parameter: ParameterHelp) -> Iterator[str]:
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in parameter.names)
    value = f" \\fI{escape(parameter.value)}\\fR" if parameter.value else ""
    yield from (".TP", names + value, escape(parameter.text))


def _examples(command: CommandHelp) -> Iterator[str]:
    if command.examples:
        yield from (".SH EXAMPLES", ".EX", *map(escape, command.examples), ".EE")


def _common_ending(command: CommandHelp) -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for status in ExitStatus:
        yield from (".TP", f".B {int(status)}", escape(status.meaning))
    yield ".SH ENVIRONMENT"
    for name, text in ENVIRONMENT.items():
        yield from (".TP", f".B {escape(name)}", escape(text))
    if len(command.path) > 1:
        parent = "-".join(command.path[:-1])
        yield from (".SH SEE ALSO", f".BR {escape(parent)} (1)")


def escape(text: str) -> str:
    """Text escaped for roff."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in safe.split("\n"))
