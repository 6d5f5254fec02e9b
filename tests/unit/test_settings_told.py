"""A setting that is missing is told with what it is, an example that would do, and where it is explained."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from host import settings as host_settings
from shared_contracts.contract import FAMILIES
from tests.support.compose import ROOT, SERVICES, environment
from tool_server import settings as tools_settings
from tool_server.errors import SettingsError

LINKS = ("dsn", "migrate_dsn", "server_url", "issuer", "signing_key_file", "audit_host_dsn", "audit_tools_dsn")
NEEDED = [
    *[("KESSAI_", host_settings.Settings, name) for name in LINKS],
    *[
        ("KESSAI_TOOLS_", model, name)
        for model in (tools_settings.Settings, tools_settings.OwnerSettings)
        for name, field in model.model_fields.items()
        if field.is_required()
    ],
]
NAMES = [f"{prefix}{name}".upper() for prefix, _, name in NEEDED]


@pytest.mark.parametrize(("prefix", "model", "name"), NEEDED, ids=NAMES)
def test_every_needed_setting_has_words_and_an_example_that_would_do(prefix, model, name):
    field = model.model_fields[name]
    (example,) = field.examples
    assert field.description
    model.__pydantic_validator__.validate_assignment(model.model_construct(), name, example)
    if name.endswith("dsn"):
        assert set(conninfo_to_dict(example)) == {"host", "dbname", "user", "passfile"}


@pytest.mark.parametrize("name", NAMES)
def test_every_needed_setting_is_explained_where_its_message_says(name):
    page = (ROOT / "RUNBOOK.md").read_text("utf-8")
    part = page.partition("### Several machines")[2].partition("\n## ")[0]
    referred_to = {key for service in ("tool-server", "worker") for key in environment(SERVICES[service])}
    assert "service `tool-server`" in part
    assert "service `worker`" in part
    assert name in part or name in referred_to


def test_all_that_is_missing_is_told_at_once_one_per_line():
    with pytest.raises(SettingsError) as caught:
        tools_settings.load(tools_settings.Settings)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2 + len(FAMILIES)  # where it is, whose tokens it takes, a connection per family
    assert all(" is missing: the " in line and ", such as KESSAI_TOOLS_" in line for line in lines)
    assert all(line.endswith("see “Several machines” in RUNBOOK.md") for line in lines)


def test_an_owner_without_a_connection_is_led_to_where_the_line_stands_as_it_is_typed():
    with pytest.raises(SettingsError, match=r"see “The tool server's operator” in RUNBOOK\.md"):
        tools_settings.load(tools_settings.OwnerSettings)
    assert "## The tool server's operator\n" in (ROOT / "RUNBOOK.md").read_text(encoding="utf-8")


def test_a_value_that_does_not_fit_is_told_with_its_variable_and_not_repeated(monkeypatch):
    monkeypatch.setenv("KESSAI_CONCURRENCY", "canary")
    monkeypatch.setenv("KESSAI_PLANNER", "canary")
    with pytest.raises(host_settings.SettingsError) as caught:
        host_settings.load()
    names = [line.partition(":")[0] for line in str(caught.value).splitlines()]
    assert names == ["KESSAI_PLANNER", "KESSAI_CONCURRENCY"]
    assert "canary" not in str(caught.value)
