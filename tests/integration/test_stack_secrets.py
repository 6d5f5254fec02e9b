"""The directory of secrets for programs that are started one by one: complete, private, and never made twice."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from host.stack.errors import StackError, StackProblem
from host.stack.home import open_home
from host.stack.keys import ensure_keys, read_signing_key
from host.stack.secrets import COMPOSE_ISSUER, NAMES, ROLES, keys_of_secrets, write_secrets
from tool_server.keys import Keyring


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    assert write_secrets(tmp_path / "made" / "secrets", COMPOSE_ISSUER) == NAMES
    return tmp_path / "made" / "secrets"


def content(directory: Path) -> dict[str, str]:
    return {name: (directory / name).read_text() for name in NAMES}


def test_a_home_is_not_filled_with_secrets_nor_is_it_to_be_closed_to_the_databases_own_user(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    home.root.chmod(0o711)
    before = sorted(home.root.rglob("*"))
    with pytest.raises(StackError) as caught:
        write_secrets(home.root, None)
    assert "is the home of a stack" in caught.value.what
    assert "chmod" not in caught.value.mend
    assert "kessai keys rotate" in caught.value.mend
    with pytest.raises(StackError, match="Leave --in out"):
        keys_of_secrets(home.root)
    assert sorted(home.root.rglob("*")) == before
    assert home.root.stat().st_mode & 0o777 == 0o711


def test_an_open_directory_of_something_else_is_not_to_be_closed_but_another_named(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear diary")
    tmp_path.chmod(0o755)
    with pytest.raises(StackError) as caught:
        write_secrets(tmp_path, None)
    assert "chmod" not in caught.value.mend
    assert len(write_secrets(tmp_path / "secrets", None)) == len(NAMES)


def test_everything_in_it_can_be_read_by_its_owner_alone(secrets: Path) -> None:
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets.iterdir()} == {0o600}


def test_every_role_has_a_password_of_its_own_and_a_line_for_libpq(secrets: Path) -> None:
    passwords = {role: (secrets / role).read_text() for role in ROLES}
    assert len(set(passwords.values())) == len(ROLES)
    for role, password in passwords.items():
        assert len(password) >= 43
        assert (secrets / f"{role}.pgpass").read_text() == f"*:*:*:{role}:{password}\n"


def test_the_tool_server_trusts_the_key_also_after_the_directory_was_moved(secrets: Path, tmp_path: Path) -> None:
    moved = secrets.rename(tmp_path / "moved")
    trust = Keyring(moved / "issuers.json").trust()
    assert list(trust.issuers) == [COMPOSE_ISSUER]
    assert list(trust.keys) == [read_signing_key(moved / "signing.jwk")["kid"]]


def test_what_is_there_stays_and_what_is_missing_is_made(secrets: Path) -> None:
    before = content(secrets)
    assert write_secrets(secrets, COMPOSE_ISSUER) == ()
    assert content(secrets) == before
    (secrets / "host_rt").unlink()
    assert write_secrets(secrets, COMPOSE_ISSUER) == ("host_rt",)
    changed = {name for name, text in content(secrets).items() if text != before[name]}
    assert changed == {"host_rt", "host_rt.pgpass"}


def test_a_password_of_an_operators_own_is_taken_as_libpq_writes_it(secrets: Path) -> None:
    (secrets / "host_rt").write_text("a:b\\c\n")
    write_secrets(secrets, COMPOSE_ISSUER)
    assert (secrets / "host_rt.pgpass").read_text() == "*:*:*:host_rt:a\\:b\\\\c\n"


def refused(directory: Path) -> StackProblem:
    with pytest.raises(StackError) as caught:
        write_secrets(directory, COMPOSE_ISSUER)
    return caught.value.problem


def test_a_directory_that_others_can_look_into_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    assert refused(tmp_path / "open") is StackProblem.SECRET_READABLE
    assert list((tmp_path / "open").iterdir()) == []


def test_a_secret_that_others_can_read_is_refused(secrets: Path) -> None:
    (secrets / "tools_orders").chmod(0o640)
    assert refused(secrets) is StackProblem.SECRET_READABLE


def test_a_place_that_cannot_hold_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o600)
    assert refused(tmp_path / "file" / "secrets") is StackProblem.HOME_NOT_WRITABLE
    assert refused(tmp_path / "file") is StackProblem.HOME_NOT_WRITABLE


def test_the_issuer_that_is_there_is_kept_and_another_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own"
    write_secrets(own, "https://own.example")
    before = content(own)
    assert write_secrets(own, None) == ()
    with pytest.raises(StackError, match=r"https://own\.example"):
        write_secrets(own, COMPOSE_ISSUER)
    assert content(own) == before
    assert list(Keyring(own / "issuers.json").trust().issuers) == ["https://own.example"]


def test_the_keys_of_a_home_are_no_directory_of_secrets(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    ensure_keys(home)
    before = {path.name: path.read_text() for path in home.keys.iterdir()}
    with pytest.raises(StackError, match="kessai keys rotate"):
        write_secrets(home.keys, None)
    assert {path.name: path.read_text() for path in home.keys.iterdir()} == before
    with pytest.raises(StackError, match="Leave --in out"):
        keys_of_secrets(home.keys)


def test_there_is_no_key_to_change_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(StackError) as caught:
        keys_of_secrets(tmp_path)
    assert caught.value.problem is StackProblem.SECRET_MISSING
