"""From one signing key to the next: what is trusted at each step, and after a death between any two."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from host.stack import rotation
from host.stack.errors import StackError, StackProblem
from host.stack.home import open_home
from host.stack.keys import KeyFiles, ensure_keys, key_files, public_part, publish, published, read_signing_key
from host.stack.signing import AGAIN_SECONDS, SigningFile
from tests.support.opens import none_to_open
from tool_server.keys import Keyring

NOW = int(time.time())


@pytest.fixture
def files(tmp_path: Path) -> KeyFiles:
    return ensure_keys(open_home(tmp_path / "home"))


def signing(files: KeyFiles) -> str:
    return str(read_signing_key(files.signing)["kid"])


def ends(files: KeyFiles) -> dict[str, int | None]:
    """What the tool server makes of the published set."""
    return {kid: key.ends for kid, key in Keyring(files.issuers).trust().keys.items()}


def rotate(files: KeyFiles, now: float = NOW) -> None:
    """What the command does, without a tool server to ask."""
    with rotation.changing(files):
        if not rotation.finish(files, now):
            rotation.publish_next(files, now)
            rotation.sign_with_next(files, now)


def test_a_new_key_is_published_before_it_signs_and_the_old_one_stays_until_its_last_token_has_run_out(
    files: KeyFiles,
) -> None:
    old = signing(files)
    new = rotation.publish_next(files, NOW)["kid"]
    assert (signing(files), ends(files)) == (old, {old: None, new: None})
    assert rotation.sign_with_next(files, NOW) == new == signing(files)
    assert ends(files) == {new: None, old: NOW + files.old_stays}
    assert files.old_stays > 900
    rotation.tidy(files, NOW + files.old_stays - 1)
    assert set(ends(files)) == {new, old}
    rotation.tidy(files, NOW + files.old_stays)
    assert set(ends(files)) == {new}


def test_a_command_that_comes_twice_publishes_one_key(files: KeyFiles) -> None:
    assert rotation.publish_next(files, NOW) == rotation.publish_next(files, NOW)
    assert len(published(files)) == 2
    assert "d" not in {name for key in published(files) for name in key}


@pytest.mark.parametrize("replaced", range(4))
def test_a_death_at_any_file_leaves_keys_that_verify_and_the_next_command_finishes(
    files: KeyFiles, replaced: int
) -> None:
    old = signing(files)
    died = dies_after(files, replaced)
    assert died == (replaced < 4)
    assert ends(files)[signing(files)] is None
    assert ends(files)[old] is None, "its tokens are on their way"
    rotate(files)
    new = signing(files)
    assert new != old
    assert ends(files) == {new: None, old: NOW + files.old_stays}
    assert rotation.next_key(files) is None


def dies_after(files: KeyFiles, replaced: int) -> bool:
    """Rotate in a process that is killed once it has replaced so many files; False where it came to its end."""
    child = os.fork()
    if child == 0:
        replace, left = Path.replace, [replaced]

        def last(path: Path, target: Path) -> Path:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return replace(path, target)

        Path.replace = last  # type: ignore[method-assign,assignment]
        try:
            rotate(files)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_what_ends_a_stack_start_finds_a_rotation_that_was_cut_short(files: KeyFiles) -> None:
    old = signing(files)
    rotation.publish_next(files, NOW)
    files.next.replace(files.signing)
    rotation.tidy(files, NOW)
    assert ends(files) == {signing(files): None, old: NOW + files.old_stays}


def test_a_key_that_is_cut_off_verifies_nothing_and_stands_there_until_all_know(files: KeyFiles) -> None:
    old = signing(files)
    rotate(files)
    rotation.cut_off(files, old)
    assert ends(files) == {signing(files): None, old: 0}
    rotation.tidy(files, NOW)
    assert old in ends(files)
    rotation.forget(files, old)
    assert set(ends(files)) == {signing(files)}


def test_a_key_that_was_about_to_follow_can_be_cut_off(files: KeyFiles) -> None:
    following = rotation.publish_next(files, NOW)["kid"]
    rotation.cut_off(files, following)
    assert rotation.next_key(files) is None
    assert ends(files)[following] == 0
    rotate(files)
    assert signing(files) != following


def test_old_keys_do_not_pile_up_and_none_is_given_up_early(files: KeyFiles) -> None:
    for _ in range(rotation.PUBLISHED_MAX - 1):
        rotate(files)
    with pytest.raises(StackError, match="quarter of an hour"):
        rotate(files)
    assert len(published(files)) == rotation.PUBLISHED_MAX
    rotate(files, NOW + files.old_stays)
    assert len(published(files)) == 2


def test_two_commands_at_once_do_not_mix(files: KeyFiles) -> None:
    with rotation.changing(files):
        with pytest.raises(StackError) as caught:
            rotate(files)
        rotation.tidy(files, NOW)
    assert caught.value.problem is StackProblem.HOME_BUSY
    rotate(files)


def test_whoever_signs_has_the_new_key_at_once_and_keeps_it_while_a_file_is_broken(files: KeyFiles) -> None:
    current: SigningFile[Any] = SigningFile(files.signing, dict)
    old = current()["kid"]
    rotate(files)
    new = current()["kid"]
    assert new == signing(files) != old
    whole = files.signing.read_text()
    for broken in (whole[:40], ""):
        files.signing.write_text(broken)
        assert current()["kid"] == new
    files.signing.unlink()
    assert current()["kid"] == new
    files.signing.write_text(whole.replace('"sig"', '"sig" '))
    files.signing.chmod(0o600)
    assert current()["kid"] == new


def test_a_new_key_that_could_not_be_read_in_passing_is_looked_at_again_though_nobody_touched_it(
    files: KeyFiles,
) -> None:
    now = [100.0]
    current: SigningFile[Any] = SigningFile(files.signing, dict, lambda: now[0])
    old = current()["kid"]
    rotate(files)
    with none_to_open():
        assert current()["kid"] == old
    assert current()["kid"] == old
    now[0] += AGAIN_SECONDS
    assert current()["kid"] == signing(files) != old


def test_nobody_begins_without_a_key(tmp_path: Path) -> None:
    with pytest.raises(StackError):
        SigningFile(tmp_path / "none.jwk", dict)


def test_a_lost_list_of_public_keys_gets_the_following_key_back(files: KeyFiles, tmp_path: Path) -> None:
    following = rotation.publish_next(files, NOW)
    publish(files, [public_part(read_signing_key(files.signing))])
    assert rotation.publish_next(files, NOW) == following
    assert following["kid"] in ends(files)
    assert key_files(open_home(tmp_path / "home")) == files
