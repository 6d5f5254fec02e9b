"""Whatever a name leads to, what reads it ends at once: with the content of a regular file, or with what is wrong."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from host.commands.approver_keys import read_public
from host.commands.audit import _exported
from host.commands.exits import CommandError
from host.commands.run import prepare
from host.database import NotReadyError
from host.rights import read_authorization
from host.sealing import read_keys
from host.stack.errors import StackError
from host.stack.files import read_json, read_secret
from host.stack.keys import trusted_issuers
from host.stack.manifest import read_backup
from host.store import migrate
from shared_contracts.named_file import PATH_BYTES_MAX, Unread, open_file, read_file, read_text, unnameable
from shared_contracts.seal import SealKeys, UnsealedError
from tests.support.ordinary import NOBODY, as_ordinary_user, public_directory
from tool_server import load, load_cases, post
from tool_server.approvers import ApproverError, read_approver
from tool_server.errors import SettingsError, TrustError
from tool_server.json_file import read_json as read_json_file
from tool_server.keys import Keyring
from tool_server.load import SeedError
from tool_server.loads import load_file
from tool_server.settings import Settings
from tool_server.store import roles

pytestmark = pytest.mark.timeout(20)  # what hangs must not hang everything

GIANT_BYTES = 1 << 40  # of a file without a single block on the disk


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def giant(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(GIANT_BYTES)
    path.chmod(0o600)


# what it is · a word of the answer
KINDS: dict[Callable[[Path], None], str] = {fifo: "pipe", endless: "device", Path.mkdir: "directory", giant: "larger"}


def _backup(path: Path) -> Any:
    directory = path.parent / "backup"
    directory.mkdir()
    path.rename(directory / "manifest.json")
    return read_backup(directory)


def _load(path: Path) -> Any:
    return load_file("", path).send(None)  # it reads before it connects


def _jwks(path: Path) -> Any:
    issuers = path.with_name("issuers.json")
    issuers.write_text(f'[{{"issuer": "https://host.example", "jwks_file": "{path.name}", "tenants": "every"}}]')
    return Keyring(issuers)


def _smtp(path: Path) -> Any:
    return post._password(Settings.model_construct(smtp_password_file=path))


def _case(path: Path) -> Any:
    return prepare(str(path), None, None)


# who reads · how it refuses
READERS: dict[str, tuple[Callable[[Path], Any], type[Exception]]] = {
    "the authorization set": (read_authorization, NotReadyError),
    "a case": (_case, CommandError),
    "a public half at the host": (read_public, CommandError),
    "a public half at the tool server": (read_approver, ApproverError),
    "a backup's manifest": (_backup, StackError),
    "a home's list of issuers": (trusted_issuers, StackError),
    "the tool server's issuers": (Keyring, TrustError),
    "a key set": (_jwks, TrustError),
    "the host's keys that seal": (read_keys, UnsealedError),
    "a JSON file": (lambda path: read_json_file(path, 100, TrustError), TrustError),
    "orders": (load.read_seed, SeedError),
    "cases": (load_cases.read_seed, SeedError),
    "any family's data": (_load, SeedError),
    "a mail server's password": (_smtp, SettingsError),
    "a role's password at the host": (lambda path: migrate._password(path.parent, path.name), migrate.PasswordError),
    "a role's password at the tool server": (lambda path: roles._password(path.parent, path.name), roles.RolesError),
}


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("reader", READERS)
def test_who_reads_a_named_file_refuses_what_is_none_at_once(tmp_path: Path, reader: str, make: Callable[[Path], None]):
    path = tmp_path / "named"
    make(path)
    read, error = READERS[reader]
    with pytest.raises(error) as caught:
        read(path)
    said = str(caught.value) + str(getattr(caught.value, "mend", ""))
    assert KINDS[make] in said


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
@pytest.mark.parametrize("reader", ["a mail server's password", *(name for name in READERS if "a role's" in name)])
def test_a_secret_that_others_can_use_is_not_read(tmp_path: Path, reader: str, mode: int):
    path = tmp_path / "named"
    path.write_text("secret")
    read, error = READERS[reader]
    path.chmod(mode)
    with pytest.raises(error, match=f"others can use it .mode {mode:04o}.*chmod 600") as caught:
        read(path)
    assert "secret" not in str(caught.value).replace(str(path), "")
    path.chmod(0o600)
    assert read(path) == "secret"


@pytest.mark.root
@pytest.mark.parametrize(
    ("owner", "mode", "answer"),
    [
        (0, 0o440, "secret"), (0, 0o640, "secret"), (0, 0o644, "chmod 640"), (0, 0o444, "chmod 640"),
        (0, 0o660, "chmod 640"), (0, 0o450, "chmod 640"), (None, 0o400, "secret"), (None, 0o440, "chmod 600"),
        (12_345, 0o440, "neither to us"), (12_345, 0o444, "neither to us"),
    ],
)  # fmt: skip
def test_the_group_of_a_secret_may_read_it_where_root_owns_it_and_nobody_else_may_anything(
    owner: int | None, mode: int, answer: str
):
    def read() -> str:
        try:
            at_the_host = read_secret(path)
        except StackError as error:
            at_the_host = f"{error.what} {error.mend}"
        elsewhere = read_text(path, secret=True)
        return f"{at_the_host}\n{elsewhere.why if isinstance(elsewhere, Unread) else elsewhere}"

    with public_directory() as public:
        path = public / "named"
        path.write_text("secret")
        user = pwd.getpwnam(NOBODY)
        os.chown(path, user.pw_uid if owner is None else owner, user.pw_gid)
        path.chmod(mode)
        said = as_ordinary_user(read).splitlines()
    assert [answer in one for one in said] == [True, True], said
    assert ("secret" in said) is (answer == "secret")


DECIDES = ("the authorization set", "a public half", "issuers", "a key set", "keys that seal")


@pytest.mark.parametrize("reader", [name for name in READERS if name.endswith(DECIDES) or name.startswith(DECIDES)])
def test_what_says_who_is_trusted_is_not_believed_where_everybody_can_write_it(tmp_path: Path, reader: str):
    path = tmp_path / "named"
    path.write_text("{}")
    path.chmod(0o646)
    read, error = READERS[reader]
    with pytest.raises(error) as caught:
        read(path)
    assert "everybody can write it" in str(caught.value) + str(getattr(caught.value, "mend", ""))
    path.chmod(0o644)
    with pytest.raises(error) as caught:
        read(path)
    assert "everybody can write it" not in str(caught.value)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_an_export_may_have_any_length_but_no_line_of_it_may(tmp_path: Path, make: Callable[[Path], None]):
    make(tmp_path / "named")
    with pytest.raises(CommandError, match="not JSON" if make is giant else KINDS[make]):
        _exported(tmp_path / "named", SealKeys(host=(), tools=()))


@pytest.mark.parametrize("make", [fifo, Path.mkdir, giant], ids=lambda make: make.__name__)
def test_a_secret_that_is_no_plain_short_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]):
    path = tmp_path / "secret"
    make(path)
    path.chmod(0o700 if path.is_dir() else 0o600)
    with pytest.raises(StackError, match=KINDS[make]):
        read_secret(path)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_a_home_whose_state_file_is_none_has_no_state(tmp_path: Path, make: Callable[[Path], None]):
    make(tmp_path / "stack.json")
    assert read_json(tmp_path / "stack.json") is None


def test_a_regular_file_is_read_whole_through_links_and_from_the_kernel_too(tmp_path: Path):
    content = os.urandom(3_000_000)
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "link").symlink_to("file")
    assert read_file(tmp_path / "link", len(content)) == content
    assert read_file(tmp_path / "file", len(content) - 1) == Unread(
        f"it is larger than {len(content) - 1} bytes; name the file that is meant"
    )
    (tmp_path / "empty").touch()
    assert read_file(tmp_path / "empty", 0) == b""
    named = Path(f"/proc/{os.getpid()}/fd")
    if named.is_dir():  # a file of the kernel's has a length of nothing, and a content
        assert read_file(named.parent / "status", 100_000)
        assert isinstance(read_file(named.parent / "status", 10), Unread)
        with (tmp_path / "file").open("rb") as opened:
            assert read_file(named / str(opened.fileno()), len(content)) == content


def test_what_is_not_there_and_what_cannot_be_there_are_told_apart(tmp_path: Path):
    for path, missing in ((tmp_path / "a", True), (tmp_path / ("a" * 256), False), (tmp_path / "a\0b", False)):
        found = read_file(path, 10)
        assert isinstance(found, Unread)
        assert found.missing is missing
        assert found.why


def test_a_socket_and_text_in_another_encoding_are_refused(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert isinstance(read_file(tmp_path / "socket", 10), Unread)
    (tmp_path / "latin").write_bytes("trè".encode("latin-1"))
    assert isinstance(read_text(tmp_path / "latin"), Unread)


def test_no_descriptor_is_left_open_and_none_is_handed_to_a_child(tmp_path: Path):
    fifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"content")
    before = os.open(tmp_path / "file", os.O_RDONLY)
    os.close(before)
    for name in ("pipe", "file"):
        read_file(tmp_path / name, 100)
        read_file(tmp_path / name, 1)
    descriptor = open_file(tmp_path / "file")
    assert isinstance(descriptor, int)
    assert (descriptor, os.get_inheritable(descriptor)) == (before, False)
    os.close(descriptor)


@pytest.mark.parametrize(
    ("path", "more", "why"),
    [
        ("/" + "a" * 256, 0, "longer than 255 bytes"),
        ("/" + "あ" * 86, 0, "longer than 255 bytes"),
        ("/ab" * 1400, 0, "whole path"),
        ("/ab" * 1300, 500, "whole path"),
        ("/a\0b", 0, "NUL"),
        ("/a\ud800", 0, "character"),
        ("/" + "a" * 255, 500, None),
        ("/ab" * 1300, 0, None),
    ],
)
def test_a_name_that_nothing_can_have_is_known_before_anything_looks(path: str, more: int, why: str | None):
    said = unnameable(Path(path), more)
    assert said is None if why is None else why in str(said)


def test_the_longest_path_is_the_systems_own():
    assert os.pathconf("/", "PC_PATH_MAX") >= PATH_BYTES_MAX + 1
