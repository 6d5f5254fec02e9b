"""The image: what is installed is locked by hash, nobody runs as root in it, and no secret can get into it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
STAGES = [stage.strip().splitlines() for stage in re.split(r"^FROM ", TEXT, flags=re.MULTILINE)[1:]]
BUILD, FINAL = STAGES
SENT = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] == "!"}


def installations(stage: list[str]) -> list[str]:
    return [
        command for line in stage for command in re.split(r"&&", line) if re.search(r"pip\S* (install|wheel)", command)
    ]


def test_everything_that_comes_from_a_registry_is_locked_by_its_hash() -> None:
    found = installations(BUILD)
    assert len(found) == 4
    for command in found:
        locked = "--require-hashes" in command and "--only-binary :all:" in command
        assert locked or ("--no-index" in command and "--no-deps" in command)
    for name in ("requirements.lock", "requirements-dev.lock"):
        lines = (ROOT / name).read_text("utf-8").splitlines()
        assert sum(line.startswith("    --hash=sha256:") for line in lines) >= sum("==" in line for line in lines) > 0


def test_the_final_stage_installs_nothing_and_keeps_no_installer() -> None:
    assert installations(FINAL) == []
    assert "RUN python -m pip uninstall --yes setuptools wheel pip" in FINAL
    assert [line for line in FINAL if line.startswith("COPY")] == ["COPY --from=build /opt/kessai /opt/kessai"]
    assert "apt" not in TEXT


def test_nobody_is_root_in_it() -> None:
    users = [line.split()[1] for line in FINAL if line.startswith("USER ")]
    assert users == ["10001:10001"]
    assert FINAL.index("USER 10001:10001") > max(at for at, line in enumerate(FINAL) if line.startswith("RUN"))


def test_both_stages_are_the_same_python_as_the_project_asks_for() -> None:
    images = {stage[0].split()[0] for stage in STAGES}
    assert images == {"python:3.11-slim"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"


def test_no_address_and_no_variable_of_ours_stands_in_it() -> None:
    assert "://" not in TEXT
    assert "KESSAI" not in TEXT
    assert not re.search(r"^(ARG|ADD)\b", TEXT, re.MULTILINE)


def test_the_builder_is_sent_what_it_copies_and_nothing_else() -> None:
    copied = {word for line in BUILD if line.startswith("COPY ") for word in line.split()[1:-1]}
    assert (ROOT / ".dockerignore").read_text("utf-8").splitlines()[1] == "*"
    assert copied == SENT
    assert all((ROOT / name).exists() for name in copied)
    read_at_build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"].get("readme")
    assert read_at_build is None or read_at_build in copied
