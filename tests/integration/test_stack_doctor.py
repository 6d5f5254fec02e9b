"""The doctor's checks: all well on a fresh home, and each finding names what is wrong and its mend."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from host.stack.doctor import (
    Check,
    check_auditors,
    check_database,
    check_environment,
    check_files,
    check_port,
    check_unaudited,
)
from host.stack.home import Home, open_home
from host.stack.keys import ensure_keys, key_files
from host.stack.ports import LOOPBACK, choose_port
from host.stack.postgres import Cluster, Server
from host.stack.roles import write_passwords
from host.stack.serving import ADMIN
from tests.support import cluster as shared
from tests.support.embedded import embedded, started

pytestmark = pytest.mark.xdist_group("stack-doctor")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = open_home(tmp_path / "home")
    write_passwords(made)
    ensure_keys(made)
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Server]]:
    with embedded(tmp_path_factory.mktemp("doctor") / "home") as cluster:
        yield cluster, started(cluster)


@contextmanager
def running(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program that has begun, and lasts as long as the block."""
    with subprocess.Popen(["/bin/sh", "-c", "echo begun; read _"], env=environment, stdin=-1, stdout=-1) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"begun\n"
        yield program
        program.communicate(b"\n", timeout=10)


def wrong(findings: list[Check]) -> dict[str, str]:
    assert all(finding.mend for finding in findings if not finding.well)
    return {finding.check: finding.detail for finding in findings if not finding.well}


def test_a_fresh_home_is_well(home: Home) -> None:
    findings = check_files(home)
    assert wrong(findings) == {}
    assert len(findings) > 15


def test_what_others_can_read_is_named(home: Home) -> None:
    (home.passwords / "host" / "host_rt").chmod(0o644)
    key_files(home).signing.chmod(0o640)
    home.mail.chmod(0o755)
    found = wrong(check_files(home))
    assert set(found) == {"secret passwords/host/host_rt", "signing key", "published keys", "directory mail"}


def test_what_is_missing_is_named(home: Home) -> None:
    (home.passwords / "tools" / "tools_returns").unlink()
    key_files(home).jwks.unlink()
    assert set(wrong(check_files(home))) == {"secret passwords/tools/tools_returns", "published keys"}


def test_public_keys_that_lack_the_signing_key_are_named(home: Home) -> None:
    key_files(home).jwks.write_text('{"keys": []}')
    assert set(wrong(check_files(home))) == {"published keys"}


def test_a_variable_that_would_win_over_ours_is_named_without_its_value() -> None:
    assert wrong(check_environment({"PATH": "/bin"})) == {}
    findings = check_environment({"PGPASSWORD": "kx7q", "PGOPTIONS": ""})
    assert len(findings) == 2
    assert not any("kx7q" in f"{finding}" for finding in findings)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KESSAI_AUDIT_TOOLS_DSN", "host=kx7q"),
        ("KESSAI_DSN", "host=kx7q user=host_auditor"),
        ("X", "u=tools_auditor kx7q"),
    ],
)
def test_a_program_that_works_and_has_an_auditors_connection_is_named_without_its_value(
    variable: str, value: str
) -> None:
    with running({variable: value}) as program:
        finding = check_unaudited("the worker", program.pid)
    assert (finding.well, variable in finding.detail, "kx7q" in f"{finding}") == (False, True, False)
    assert finding.mend


def test_a_program_without_an_auditors_connection_is_well_and_one_that_is_gone_is_not_judged() -> None:
    with running({"KESSAI_DSN": "user=host_rt"}) as program:
        assert check_unaudited("the worker", program.pid) == Check(
            "auditors apart from the worker", True, "it has no connection of theirs", ""
        )
    assert "not told here" in check_unaudited("the worker", program.pid).detail


def test_auditors_connections_beside_those_of_somebody_who_works_are_named() -> None:
    assert check_auditors([], "KESSAI_DSN").well
    assert check_auditors(["KESSAI_AUDIT_HOST_DSN"], None).well
    found = wrong([check_auditors(["KESSAI_AUDIT_HOST_DSN"], "KESSAI_DSN, KESSAI_ISSUER")])
    assert found == {"auditors' connections": "KESSAI_AUDIT_HOST_DSN beside KESSAI_DSN, KESSAI_ISSUER"}


def test_a_port_that_another_holds_is_named() -> None:
    port = choose_port(None)
    assert check_port("tool server", port, ours=False).well
    with socket.socket() as other:
        other.bind((LOOPBACK, port))
        other.listen()
        assert not check_port("tool server", port, ours=False).well
        assert check_port("tool server", port, ours=True).well


def test_the_embedded_database_is_well(served: tuple[Cluster, Server]) -> None:
    cluster, server = served
    findings = asyncio.run(check_database(server.conninfo("postgres", ADMIN, password=cluster.admin_password())))
    assert wrong(findings) == {}
    assert {"PostgreSQL fsync", "PostgreSQL synchronous_commit", "PostgreSQL version", "clocks"} <= {
        finding.check for finding in findings
    }


def test_a_database_that_loses_commits_in_a_crash_is_named() -> None:
    found = wrong(asyncio.run(check_database(shared.cluster())))
    assert set(found) == {"PostgreSQL fsync", "PostgreSQL synchronous_commit", "PostgreSQL full_page_writes"}


def test_a_database_that_does_not_answer_is_named_without_the_password(tmp_path: Path) -> None:
    target = make_conninfo(host=str(tmp_path), port=1, dbname="host", user="host_rt", password="kx7q")
    (finding,) = asyncio.run(check_database(target))
    assert not finding.well
    assert "kx7q" not in f"{finding}"
