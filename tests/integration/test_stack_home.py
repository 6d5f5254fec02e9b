"""A home: its rights, what is refused, and what may be removed."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from host.stack.errors import StackError, StackProblem
from host.stack.files import read_secret, write_secret, write_whole
from host.stack.home import MARKER, default_root, existing_home, open_home
from host.stack.locks import Hold
from host.stack.mode import holders_lock
from host.stack.removal import empty_home
from tests.support.ordinary import as_ordinary_user, ordinary_directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refused(problem: StackProblem, work: object, *arguments: object) -> str:
    with pytest.raises(StackError) as caught:
        work(*arguments)
    assert caught.value.problem is problem
    assert caught.value.mend
    return caught.value.what


def test_a_home_is_not_emptied_for_a_run_while_a_command_works_in_it(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    working = Hold(holders_lock(home))
    working.shared()
    with pytest.raises(StackError, match="Another command works in") as caught:
        asyncio.run(empty_home(home.root, only_unused=True))
    assert caught.value.problem is StackProblem.HOME_BUSY
    assert existing_home(home.root) is not None
    working.close()
    asyncio.run(empty_home(home.root, only_unused=True))
    assert existing_home(home.root) is None


def test_everything_secret_lies_where_only_we_can_look(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        home = open_home(tmp_path / "home")
        write_secret(home.keys / "one", "x")
    finally:
        os.umask(old)
    assert {mode(path) for path in (home.passwords, home.passfiles, home.keys, home.run, home.logs, home.mail)} == {
        0o700
    }
    assert mode(home.root) == (0o711 if os.geteuid() == 0 else 0o700)
    assert mode(home.keys / "one") == 0o600


def test_a_home_keeps_its_identity(tmp_path: Path) -> None:
    first, second = open_home(tmp_path / "home"), open_home(tmp_path / "home")
    assert first == second == existing_home(tmp_path / "home")
    assert open_home(tmp_path / "other").id != first.id


def test_asking_for_a_home_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    assert existing_home(tmp_path / "home") is None
    assert list(tmp_path.iterdir()) == []


def test_the_default_follows_the_users_data_directory() -> None:
    assert default_root("/data") == Path("/data/kessai")
    for unusable in (None, "", "relative"):
        assert default_root(unusable).is_relative_to(Path.home())


def test_a_directory_with_other_things_in_it_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    refused(StackProblem.HOME_FOREIGN, open_home, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_home_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(StackProblem.HOME_NOT_WRITABLE, open_home, tmp_path / "file" / "home")


def test_a_home_where_we_may_not_write_is_refused() -> None:
    with ordinary_directory() as own:
        own.chmod(0o555)
        assert as_ordinary_user(lambda: _problem(own / "home")) == "home_not_writable"


def test_a_home_of_somebody_else_is_refused() -> None:
    assert as_ordinary_user(lambda: _problem(Path("/"))) == "home_not_ours"


def _problem(root: Path) -> str:
    try:
        open_home(root)
    except StackError as error:
        return error.problem
    return "opened"


@pytest.mark.parametrize("exposed", [0o640, 0o604, 0o620, 0o660, 0o611])
def test_a_secret_that_others_can_use_is_refused(tmp_path: Path, exposed: int) -> None:
    file = tmp_path / "key"
    write_secret(file, "kx7q")
    assert read_secret(file) == "kx7q"
    file.chmod(exposed)
    with pytest.raises(StackError, match=f"others can use it .mode {exposed:04o}") as caught:
        read_secret(file)
    assert "kx7q" not in repr(caught.value)
    assert caught.value.mend.endswith(f", then chmod 600 '{file}'")


@pytest.mark.parametrize("name", ["keys", "passwords", "passwords/tools", "passfiles", "run"])
def test_a_directory_of_secrets_that_others_can_enter_is_refused(tmp_path: Path, name: str) -> None:
    home = open_home(tmp_path / "home")
    (home.root / name).chmod(0o750)
    assert name in refused(StackProblem.SECRET_READABLE, open_home, home.root)
    (home.root / name).chmod(0o700)
    open_home(home.root)


def test_a_link_in_the_place_of_a_directory_of_ours_is_refused(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home")
    (tmp_path / "theirs").mkdir(mode=0o700)
    home.passfiles.rmdir()
    home.passfiles.symlink_to(tmp_path / "theirs")
    refused(StackProblem.HOME_NOT_WRITABLE, open_home, home.root)


def test_a_marker_whose_writer_was_killed_does_not_make_the_home_foreign(tmp_path: Path) -> None:
    (tmp_path / f".{MARKER}.0123456789ab").write_text('{"id"')
    open_home(tmp_path)
    assert not (tmp_path / f".{MARKER}.0123456789ab").exists()


def test_a_secret_is_read_behind_a_link_and_is_no_pipe_and_no_directory(tmp_path: Path) -> None:
    write_secret(tmp_path / "key", "secret")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    assert read_secret(tmp_path / "link") == "secret"
    (tmp_path / "key").chmod(0o640)
    refused(StackProblem.SECRET_READABLE, read_secret, tmp_path / "link")
    os.mkfifo(tmp_path / "pipe", 0o600)
    refused(StackProblem.SECRET_MALFORMED, read_secret, tmp_path / "pipe")
    refused(StackProblem.SECRET_MALFORMED, read_secret, tmp_path)
    refused(StackProblem.SECRET_MISSING, read_secret, tmp_path / "nowhere")


def test_a_secret_that_is_no_text_is_refused_without_showing_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "key").chmod(0o600)
    refused(StackProblem.SECRET_MALFORMED, read_secret, tmp_path / "key")


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_whole(tmp_path / "state", "old", 0o644)
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "state", "new \ud800", 0o644)
    assert (tmp_path / "state").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_emptying_refuses_a_directory_that_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(StackError) as caught:
        asyncio.run(empty_home(tmp_path))
    assert caught.value.problem is StackProblem.HOME_FOREIGN
    assert (tmp_path / "letter.txt").read_text() == "dear"


def test_emptying_nothing_is_no_error(tmp_path: Path) -> None:
    assert asyncio.run(empty_home(tmp_path / "nowhere")) is False
    assert asyncio.run(empty_home(tmp_path)) is False


def test_emptying_removes_what_we_made_and_neither_follows_links_nor_takes_other_things(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "letter.txt").write_text("dear")
    home = open_home(tmp_path / "home")
    (home.mail / "new").rmdir()
    (home.mail / "new").symlink_to(tmp_path / "outside")
    assert asyncio.run(empty_home(home.root)) is True
    assert list(home.root.iterdir()) == []
    assert (tmp_path / "outside" / "letter.txt").read_text() == "dear"

    home = open_home(tmp_path / "home")
    (home.root / "notes.txt").write_text("mine")
    assert asyncio.run(empty_home(home.root)) is True
    assert {path.name for path in home.root.iterdir()} == {"notes.txt", MARKER}
    assert open_home(home.root).id == home.id
