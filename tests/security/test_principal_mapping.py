"""ssl.principal.mapping.rules: the cases of Kafka's own SslPrincipalMapperTest."""

import pytest

from broker.security.principal_mapping import NoMatchingRule, SslPrincipalMapper

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "user"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_first_matching_rule_applies(name: str, user: str) -> None:
    assert SslPrincipalMapper(RULES).user_name(name) == user


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("RULE:^CN=(.*?),.*$/$1\\,$2/", "CN=a,O=b", "a,$2"),
        ("DEFAULT", "CN=Duke", "CN=Duke"),
        ("RULE:^CN=((\\\\, *|\\w)+)(,.*|$)/$1/,DEFAULT", "CN=Duke\\, The,O=Sun", "Duke\\, The"),
        ("RULE:^CN=(?<cn>[^,]*).*$/$1/U", "CN=duke,O=b", "DUKE"),
    ],
)
def test_rule_with_escapes_and_groups(rules: str, name: str, user: str) -> None:
    assert SslPrincipalMapper(rules).user_name(name) == user


def test_name_without_matching_rule_is_not_authenticated() -> None:
    with pytest.raises(NoMatchingRule, match="CN=Duke"):
        SslPrincipalMapper("RULE:^O=(.*)$/$1/").user_name("CN=Duke")


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?,OU=ServiceUsers.*$/$1/",
    ],
)
def test_malformed_rule_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        SslPrincipalMapper(rules)
