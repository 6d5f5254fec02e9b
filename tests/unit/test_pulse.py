"""The file by which a worker is watched: fresh while it works, and nothing else is taken for that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from host.pulse import FRESH_SECONDS, beat, fresh

ROOT = Path(__file__).parents[2]


def test_a_worker_that_works_is_seen_and_one_that_does_not_is_not(tmp_path: Path) -> None:
    file = tmp_path / "pulse"
    assert not fresh(file)
    beat(file, works=True)
    assert fresh(file)
    beat(file, works=False)
    assert not fresh(file)
    beat(file, works=False)


def test_a_file_that_grew_old_or_is_from_the_future_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pulse"
    for offset in (-FRESH_SECONDS - 5, FRESH_SECONDS + 5):
        beat(file, works=True)
        os.utime(file, (time.time() + offset,) * 2)
        assert not fresh(file)
        beat(file, works=True)
        assert fresh(file)


def code(*arguments: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "host.pulse", *arguments], cwd=ROOT, check=False, timeout=30
    ).returncode


def test_the_command_answers_by_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "pulse"
    assert code(str(file)) == 1
    beat(file, works=True)
    assert code(str(file)) == 0
    assert code() == 1
