"""What the doctor makes of a line that leaves this machine: a warning with what to do, and no word of a password."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from host.check_views import Checks, CheckView
from host.commands.doctor import _findings, _part, _show
from host.commands.doctor_lines import checks
from host.stack.doctor import Check
from host.stack.status import PartState, PartStatus

PASSWORD = "s3cr3t-of-nobody"


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://127.0.0.1:8801/mcp", False), ("http://[::1]:8801/mcp", False), ("http://LOCALHOST/mcp", False),
        ("https://tools.example/mcp", False), ("http://tools.example/mcp", True), ("http://192.0.2.7:8801/mcp", True),
        ("http://localhost.example/mcp", True), ("http://127.0.0.1.example/mcp", True),
    ],
)  # fmt: skip
def test_plain_http_to_another_machine_is_warned_of(url: str, warned: bool):
    (found,) = checks(url, {})
    assert (found.well, "https" in found.mend, "can read" in found.detail) == (True, warned, warned)


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("dbname=host", "this machine"),
        ("host=/run/postgresql", "this machine"),
        ("host=127.0.0.1 sslmode=disable", "this machine"),
        ("host=db.example hostaddr=127.0.0.1", "this machine"),
        ("postgresql://localhost,[::1]/host", "this machine"),
        ("host=db.example sslmode=verify-full", "proven"),
        ("host=db.example sslrootcert=system", "proven"),
        ("host=db.example", "to db.example with sslmode=prefer: whoever is on the way may read"),
        ("host=localhost hostaddr=192.0.2.7 sslmode=disable", "to 192.0.2.7 with sslmode=disable: whoever"),
        ("host=localhost,db.example sslmode=allow", "to db.example with sslmode=allow: whoever"),
        ("postgresql://db.example/host?sslmode=require", "sslmode=require: another server could answer"),
        ("host=db.example sslmode=verify-ca", "sslmode=verify-ca: another server could answer"),
        ("service=returns", "leads where its service says"),
    ],
)
def test_a_database_elsewhere_whose_server_is_not_proven_is_warned_of(
    dsn: str, said: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSSLMODE", "PGSSLROOTCERT"):
        monkeypatch.delenv(name, raising=False)
    (found,) = checks(None, {"KESSAI_DSN": dsn})
    assert said in found.detail
    assert found.well
    warned = " with sslmode=" in found.detail or "service" in found.detail
    assert ("sslmode=verify-full" in found.mend and "KESSAI_DSN" in found.mend) is warned


def test_what_libpqs_own_variables_say_counts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGHOST", "db.example")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert [found.detail for found in checks(None, {"KESSAI_DSN": "dbname=host"})] == ["TLS, and who answers is proven"]


@pytest.mark.parametrize("dsn", [f"password {PASSWORD}", f"host=db.example password={PASSWORD}"])
def test_a_string_that_is_none_is_named_and_a_password_is_never_repeated(dsn: str):
    (found,) = checks(None, {"KESSAI_SEALER_DSN": dsn})
    assert found.well is ("=" in dsn)
    assert found.mend != ""
    assert "KESSAI_SEALER_DSN" in found.check
    assert PASSWORD not in repr(found)


@pytest.mark.parametrize(
    "url", ["tools.example:8801/mcp", "http://[::1", "/mcp", "ftp://tools.example", "http://", "https://x:y/"]
)
def test_an_address_that_is_none_is_no_line_at_all(url: str):
    (found,) = checks(url, {})
    assert (found.well, found.mend) == (False, "write https://HOST/mcp")


@pytest.mark.parametrize(("name", "value"), [("KESSAI_DSN", f"password {PASSWORD}"), ("KESSAI_SERVER_URL", "http://[")])
def test_the_doctor_looks_no_further_along_a_line_that_is_none(name: str, value: str, monkeypatch: pytest.MonkeyPatch):
    given = {
        "KESSAI_DSN": "host=db.example", "KESSAI_SERVER_URL": "https://tools.example/mcp",
        "KESSAI_ISSUER": "https://host.example", "KESSAI_SIGNING_KEY_FILE": "signing.jwk",
    }  # fmt: skip
    for variable, said in {**given, name: value}.items():
        monkeypatch.setenv(variable, said)

    async def found() -> list[Check]:
        return [finding async for finding in _findings()]

    findings = asyncio.run(found())
    assert [finding.check for finding in findings if not finding.well] == [f"line of {name}"]
    assert PASSWORD not in repr(findings)


def test_a_warning_is_shown_with_what_to_do_and_is_no_failure(capsys: pytest.CaptureFixture[str]):
    (found,) = checks("http://tools.example/mcp", {})
    _show(Checks(well=True, checks=(CheckView(check=found.check, well=True, detail=found.detail, mend=found.mend),)))
    assert capsys.readouterr().out == f"warn  {found.check}: {found.detail}; {found.mend}\n"


def test_a_part_that_does_not_run_is_a_fault_of_a_stack_that_is_up_and_of_no_other():
    stopped = PartStatus("tool_server", PartState.STOPPED, None, None, Path("tool_server.log"))
    assert _part(stopped, up=False).well
    found = _part(stopped, up=True)
    assert (found.well, found.mend) == (False, "see tool_server.log, then: kessai up")
