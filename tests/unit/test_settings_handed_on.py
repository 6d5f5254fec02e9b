"""What the host hands on to a tool server that it starts: its variables, unread but for what depends on a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from host.settings import for_tool_server


def test_a_relative_path_counts_from_where_the_command_was_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KESSAI_TOOLS_MAILDIR", "mail")
    monkeypatch.setenv("KESSAI_TOOLS_SMTP_PASSWORD_FILE", "secrets/smtp")
    monkeypatch.setenv("KESSAI_TOOLS_SMTP_HOST", "mail.example")
    assert for_tool_server() == {
        "KESSAI_TOOLS_MAILDIR": str(tmp_path / "mail"),
        "KESSAI_TOOLS_SMTP_PASSWORD_FILE": str(tmp_path / "secrets/smtp"),
        "KESSAI_TOOLS_SMTP_HOST": "mail.example",
    }


def test_an_absolute_path_stays_and_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KESSAI_TOOLS_MAILDIR", "/var/mail/returns")
    monkeypatch.setenv("KESSAI_TOOLS_SMTP_HOST", "")
    assert for_tool_server() == {"KESSAI_TOOLS_MAILDIR": "/var/mail/returns"}


def test_connections_and_passwords_are_never_taken_from_whoever_types(monkeypatch: pytest.MonkeyPatch):
    for name in ("ORDERS_DSN", "MIGRATE_DSN", "ROLE_PASSWORDS"):
        monkeypatch.setenv(f"KESSAI_TOOLS_{name}", "elsewhere")
    assert for_tool_server() == {}
