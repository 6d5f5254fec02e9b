"""The evaluation's home is made anew for another build, and whoever signed a report in the old one stays known."""

from __future__ import annotations

import asyncio
from pathlib import Path

from host.evaluation import place
from host.stack.files import read_json, write_json
from host.stack.home import existing_home, open_home
from host.stack.keys import ensure_keys, key_files


def test_the_public_keys_of_an_older_builds_home_are_kept_and_its_private_ones_are_not(tmp_path: Path):
    root = tmp_path / "home-evaluation"
    older = open_home(root)
    before = read_json(ensure_keys(older).seal_keys)
    write_json(older.run / place.MADE, {"code": "another build"})

    asyncio.run(place.without_another_codes(root))

    made = existing_home(root)
    assert made is not None
    assert not key_files(made).seal_host.exists()
    after = read_json(ensure_keys(made).seal_keys)
    assert before is not None
    assert after is not None
    assert after["host"][1:] == before["host"]
    assert after["host"][0] not in before["host"]


def test_a_home_that_is_dropped_leaves_no_key(tmp_path: Path):
    root = tmp_path / "home-evaluation"
    ensure_keys(open_home(root))
    assert asyncio.run(place.drop(root))
    assert not root.exists()
