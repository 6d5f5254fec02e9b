"""An approver's key: its owner's alone, opened by the one passphrase, never written over."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from host.commands.approver_keys import SCRYPT, KeyFiles, files_of, is_locked, make, opened, read_public
from host.commands.exits import CommandError, Exit
from host.commands.passphrase import chosen
from host.settings import Settings, SettingsError, approvers_directory
from host.stack.errors import StackError, StackProblem
from shared_contracts.approval import Approver, jwk_of
from shared_contracts.base import Money

TANAKA = Approver(
    name="tanaka", tenant_id="acme-jp", limit=Money(amount=1, currency="JPY"), substitutes=(),
    substitutes_after_seconds=0,
)  # fmt: skip
SECRET = "a passphrase of hers"


@pytest.fixture
def files(tmp_path: Path) -> KeyFiles:
    return files_of(tmp_path / "keys", "tanaka")


@pytest.mark.parametrize("passphrase", [None, SECRET])
def test_what_was_made_opens_again_and_fits_its_public_half(files: KeyFiles, passphrase: str | None):
    trusted = make(files, TANAKA, passphrase)
    assert is_locked(files) == (passphrase is not None)
    key, kid = opened(files, passphrase)
    assert jwk_of(key.public_key()) == trusted.key == read_public(files.public).key
    assert kid == trusted.key.kid
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (files.private.parent, files.private, files.public)]
    assert modes == [0o700, 0o600, 0o644]


def test_a_key_is_never_written_over(files: KeyFiles):
    make(files, TANAKA, None)
    before = files.private.read_bytes()
    with pytest.raises(FileExistsError):
        make(files, TANAKA, None)
    assert files.private.read_bytes() == before


@pytest.mark.parametrize("wrong", ["another", "", SECRET + " "])
def test_no_other_passphrase_opens_it(files: KeyFiles, wrong: str):
    make(files, TANAKA, SECRET)
    with pytest.raises(CommandError, match="passphrase is wrong") as caught:
        opened(files, wrong)
    assert caught.value.code == Exit.BAD_INPUT


def test_a_guess_costs_what_is_recommended():
    assert (SCRYPT["n"] * SCRYPT["p"], SCRYPT["r"]) == (3 * 2**15, 8)


@pytest.mark.parametrize("length", [0, 7, 8, 64, 200])
def test_a_passphrase_has_eight_characters_or_more_and_no_most(tmp_path: Path, length: int):
    file = tmp_path / "passphrase"
    file.write_text("é" * length + "\n")
    file.chmod(0o600)
    settings = Settings.model_construct(approver_passphrase_file=file)
    if length >= 8:
        assert chosen(settings) == "é" * length
    else:
        with pytest.raises(CommandError, match="8 characters or more"):
            chosen(settings)


def test_a_private_half_that_others_can_read_is_not_used(files: KeyFiles):
    make(files, TANAKA, None)
    files.private.chmod(0o640)
    with pytest.raises(StackError) as caught:
        opened(files, None)
    assert caught.value.problem == StackProblem.SECRET_READABLE


def test_a_directory_that_others_can_write_to_gets_no_key(files: KeyFiles):
    files.private.parent.mkdir()
    files.private.parent.chmod(0o770)
    with pytest.raises(StackError):
        make(files, TANAKA, None)
    assert list(files.private.parent.iterdir()) == []


def test_halves_of_two_keys_do_not_go_together(files: KeyFiles, tmp_path: Path):
    make(files, TANAKA, None)
    other = files_of(tmp_path / "others", "tanaka")
    make(other, TANAKA, None)
    with pytest.raises(StackError) as caught:
        opened(KeyFiles(files.private, other.public), None)
    assert caught.value.problem == StackProblem.SECRET_MALFORMED


@pytest.mark.parametrize("broken", [b"", b"{}", b"\xff", b"[]"])
def test_what_is_no_public_half_is_refused_as_input(files: KeyFiles, broken: bytes):
    make(files, TANAKA, None)
    files.public.write_bytes(broken)
    with pytest.raises(CommandError) as caught:
        read_public(files.public)
    assert caught.value.code == Exit.BAD_INPUT


def test_a_public_half_under_another_keys_id_is_refused(files: KeyFiles, tmp_path: Path):
    trusted = json.loads(make(files, TANAKA, None).model_dump_json())
    other = make(files_of(tmp_path / "others", "tanaka"), TANAKA, None)
    trusted["key"]["kid"] = other.key.kid
    files.public.write_text(json.dumps(trusted), encoding="utf-8")
    with pytest.raises(CommandError, match="not its key's"):
        read_public(files.public)


def test_keys_lie_apart_from_the_home_also_where_a_link_leads_into_it(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    for inside in (home, home / "keys", tmp_path / "link" / "mine"):
        with pytest.raises(SettingsError):
            approvers_directory(Settings(home=home, approvers=inside))
    assert approvers_directory(Settings(home=home, approvers=tmp_path / "mine")) == tmp_path / "mine"
