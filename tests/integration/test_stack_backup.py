"""What a backup is made with."""

from __future__ import annotations

from pathlib import Path

import pytest

from host.stack.binaries import find_program, wheel_directory
from host.stack.errors import StackError, StackProblem


def test_the_wheel_has_what_a_backup_and_a_restore_need():
    for name in ("pg_dump", "pg_restore", "pg_resetwal"):
        assert find_program(name, None, 18) == wheel_directory() / name


def test_a_missing_program_and_one_of_another_version_are_told(tmp_path: Path):
    with pytest.raises(StackError) as missing:
        find_program("pg_dump", tmp_path, 18)
    assert missing.value.problem is StackProblem.BINARIES_MISSING
    assert f"no pg_dump in {tmp_path}" in missing.value.what
    (tmp_path / "pg_dump").write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 17.2'\n")
    (tmp_path / "pg_dump").chmod(0o755)
    with pytest.raises(StackError) as other:
        find_program("pg_dump", tmp_path, 18)
    assert other.value.problem is StackProblem.DATA_OF_OTHER_VERSION
    assert "is of PostgreSQL 17" in other.value.what
