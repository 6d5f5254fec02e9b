"""What the repository promises and what it must not: the guarantee's words, no claim beyond it, no model inside."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUARANTEES = ("at-least-once delivery", "business idempotency", "effect confirmation", "reconciliation")
CONCLUSIONS = ("code exists", "contract test passes", "live system was tried")
# taken apart, so that this file does not hold it
OVERCLAIM = re.compile("exactly" + r"[\s_-]*" + "once", re.IGNORECASE)
MODELS = {
    "openai", "anthropic", "google-genai", "google-generativeai", "langchain", "langchain-core", "langgraph",
    "litellm", "mistralai", "cohere", "ollama", "transformers", "torch", "vllm", "llama-index", "openai-agents",
    "pydantic-ai", "boto3", "groq", "huggingface-hub",
}  # fmt: skip
MODULES = {name.replace("-", "_") for name in MODELS} | {"google", "llama_cpp", "agents"}
MADE = {".git", ".venv", ".home", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
MADE |= {".conformance", ".clients", ".supply"}  # others' programs, installed to be run against ours


def texts() -> Iterator[tuple[str, str]]:
    """Every text of the repository, wherever it stands; what tools leave behind is none of it."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in MADE and not name.endswith(".egg-info")]
        for name in files:
            path = Path(folder) / name
            try:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, FileNotFoundError):  # no text, or a file that somebody has just removed
                continue


@pytest.mark.parametrize("words", GUARANTEES)
def test_the_readme_promises_the_guarantee_in_its_own_words(words: str):
    assert words in " ".join(README.lower().split())


@pytest.mark.parametrize("words", CONCLUSIONS)
def test_the_readme_keeps_three_conclusions_apart(words: str):
    assert words in " ".join(README.split())


def test_no_file_claims_more_than_the_guarantee():
    read = list(texts())
    assert {"README.md", "host/cli/run.py", "tests/unit/test_promises.py"} <= {name for name, _ in read}
    assert [name for name, text in read if OVERCLAIM.search(text)] == []


@pytest.mark.parametrize("claim", ["exactly" + between + "once" for between in (" ", "-", "\n", "_", "")])
def test_every_spelling_of_the_claim_would_be_found(claim: str):
    assert OVERCLAIM.search(f"it is sent {claim.capitalize()}.")


def test_no_model_library_is_asked_for_or_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(one for more in project["optional-dependencies"].values() for one in more)]
    files = ("requirements.lock", "requirements-dev.lock")
    locked = [line for name in files for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    names = {found[0].lower() for line in (*asked, *locked) if (found := re.match(r"[A-Za-z0-9][\w.-]*", line))}
    assert "pydantic" in names
    assert names & MODELS == set()


def test_no_model_library_can_be_imported_here():
    assert [name for name in sorted(MODULES - {"google"}) if find_spec(name) is not None] == []


def test_no_program_imports_a_model_library():
    imported: set[str] = set()
    for package in ("host", "tool_server", "shared_contracts"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                    imported.add(node.module.partition(".")[0])
    assert "pydantic" in imported
    assert imported & MODULES == set()
