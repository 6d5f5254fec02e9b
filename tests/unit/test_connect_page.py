"""What the page on other clients says that they show is what they are seen to show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.clients.acts import ACTS, CLIENTS, Client

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "connect.md").read_text(encoding="utf-8")
SECTIONS = {"inspector": "MCP Inspector", "typescript": "TypeScript", "fastmcp": "fastmcp", "langchain": "LangChain"}
REFUSALS = ("foreign order", "no scope", "expired token")


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: f"{client.name}-{client.era}")
def test_every_refusal_that_a_client_shows_stands_in_its_section(client: Client):
    section = PAGE.split(f"\n## {SECTIONS[client.name]}", 1)[1].split("\n## ", 1)[0]
    assert client.shows.keys() == ACTS.keys()
    for act in REFUSALS:
        code, words = client.shows[act]
        assert [word for word in words if word not in section] == [], act
        assert client.name != "inspector" or f"| {code} |" in section


def test_three_of_the_four_speak_both_revisions():
    spoken = {name: sum(client.name == name for client in CLIENTS) for name in SECTIONS}
    assert spoken == {"inspector": 2, "typescript": 2, "fastmcp": 2, "langchain": 1}


def test_the_versions_are_those_that_are_installed():
    wanted = json.loads((ROOT / "tests/clients/package.json").read_text(encoding="utf-8"))["dependencies"]
    listed = re.findall(r"^\| [^|]+ \| (\d+\.\d+\.\d+) \|", PAGE, re.MULTILINE)
    pinned = [wanted["@modelcontextprotocol/inspector"], wanted["@modelcontextprotocol/client"]]
    inputs = [(ROOT / f"tests/clients/{name}.in").read_text(encoding="utf-8") for name in ("fastmcp", "langchain")]
    pinned += [text.strip().partition("==")[2] for text in inputs]
    assert listed == pinned


@pytest.mark.parametrize("name", ["fastmcp", "langchain"])
def test_what_pip_installs_is_pinned_by_digest_and_comes_from_no_named_address(name: str):
    lock = (ROOT / f"tests/clients/{name}.lock").read_text(encoding="utf-8")
    assert "--hash=sha256:" in lock
    assert "://" not in lock
    assert re.findall(r"^--", lock, re.MULTILINE) == []
