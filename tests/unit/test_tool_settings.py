"""The tool server's settings: everything that is wrong is named, no value of a secret is, nothing is guessed."""

from __future__ import annotations

import pytest

from shared_contracts.contract import FAMILIES
from tool_server.errors import SettingsError
from tool_server.settings import OwnerSettings, Settings, load

GOOD = {
    "RESOURCE": "http://127.0.0.1:8801/mcp",
    "ISSUERS_FILE": "/etc/kessai/issuers.json",
    **{f"{family.upper()}_DSN": f"host=db user=tools_{family} password=canary" for family in FAMILIES},
}


def read(monkeypatch: pytest.MonkeyPatch, **changes: str) -> Settings:
    for name, value in {**GOOD, **changes}.items():
        monkeypatch.setenv(f"KESSAI_TOOLS_{name}", value)
    return load(Settings)


def test_the_limits_are_on_unless_somebody_raises_them(monkeypatch):
    settings = read(monkeypatch)
    assert (settings.rate_principal, settings.rate_tenant, settings.rate_failures) == (20, 100, 10)
    assert settings.connections == 1000
    assert (settings.allowed_hosts, settings.allowed_origins) == ((), ())


def test_this_machine_alone_is_listened_to_unless_somebody_says_otherwise(monkeypatch):
    assert read(monkeypatch).host == "127.0.0.1"


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_setting_is_named(monkeypatch, name):
    with pytest.raises(SettingsError, match=f"KESSAI_TOOLS_{name}"):
        read(monkeypatch, **{name: ""})


def test_a_misspelt_setting_is_an_error_and_the_hosts_own_are_not_ours(monkeypatch):
    monkeypatch.setenv("KESSAI_DSN", "the host's")
    read(monkeypatch)
    with pytest.raises(SettingsError, match="KESSAI_TOOLS_ALLOWED_HOST:"):
        read(monkeypatch, ALLOWED_HOST="x")


@pytest.mark.parametrize("name", ["KESSAI_AUDIT_HOST_DSN", "KESSAI_AUDIT_TOOLS_DSN"])
def test_an_auditors_connection_is_refused_wherever_the_tool_server_is_started(monkeypatch, name):
    monkeypatch.setenv(name, "host=db user=auditor password=canary")
    with pytest.raises(SettingsError, match=f"{name}: an auditor's connection") as caught:
        read(monkeypatch)
    assert "canary" not in str(caught.value)


def test_lists_are_split_at_commas(monkeypatch):
    settings = read(monkeypatch, ALLOWED_HOSTS=" tools:8000 ,tools.example,", ALLOWED_ORIGINS="https://a.example")
    assert settings.allowed_hosts == ("tools:8000", "tools.example")
    assert settings.allowed_origins == ("https://a.example",)


NOT_CANONICAL = [
    "127.0.0.1:8801/mcp", "ftp://a/mcp", "http://a", "http://a/", "http://a/mcp/", "http://a/mcp?x=1", "http://a/mcp#x",
    "http://user@a/mcp", "http:///mcp", " http://a/mcp",
]  # fmt: skip


@pytest.mark.parametrize("resource", NOT_CANONICAL)
def test_a_resource_that_could_be_spelt_in_two_ways_is_refused(monkeypatch, resource):
    with pytest.raises(SettingsError, match="KESSAI_TOOLS_RESOURCE"):
        read(monkeypatch, RESOURCE=resource)


MALFORMED = (
    "RATE_PRINCIPAL=0 RATE_PRINCIPAL=-1 RATE_TENANT=off RATE_TENANT=inf RATE_TENANT=nan PORT=70000 SMTP_TLS=maybe"
    " RATE_FAILURES=0 RATE_FAILURES=none CONNECTIONS=0 CONNECTIONS=off CONNECTIONS=1000000"
)


@pytest.mark.parametrize(("name", "value"), [text.split("=") for text in MALFORMED.split()])
def test_a_malformed_value_is_refused_and_there_is_no_way_to_switch_a_limit_off(monkeypatch, name, value):
    with pytest.raises(SettingsError, match=name):
        read(monkeypatch, **{name: value})


def test_no_secret_is_ever_printed(monkeypatch):
    settings = read(monkeypatch)
    assert "canary" not in repr(settings)
    with pytest.raises(SettingsError) as caught:
        read(monkeypatch, PORT="canary-port")
    assert "canary" not in str(caught.value)


def test_settings_do_not_change_after_they_were_read(monkeypatch):
    with pytest.raises(ValueError, match="frozen"):
        read(monkeypatch).port = 1


def test_the_owners_commands_need_the_owners_access_alone(monkeypatch):
    with pytest.raises(SettingsError, match="KESSAI_TOOLS_MIGRATE_DSN"):
        load(OwnerSettings)
    monkeypatch.setenv("KESSAI_TOOLS_MIGRATE_DSN", "host=db user=tools_owner")
    assert load(OwnerSettings).role_passwords is None
