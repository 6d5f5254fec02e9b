"""Which code is installed: a digest by which a start knows what it need not do again.

Files are read, never imported: the tool server is another program, whose code the host does not run.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from host.stack.errors import StackError, StackProblem

PACKAGES = ("host", "tool_server", "shared_contracts")
SOURCE = {".py", ".sql", ".json", ".yaml", ".toml"}


@dataclass(frozen=True, slots=True)
class Build:
    """A digest of all that is installed, which is one release, and the packaged data, which are part of it."""

    code: str
    demo_files: tuple[Path, ...]


@cache
def installed_build() -> Build:
    """A few hundred small files, read once per process."""
    roots = {name: _root(name) for name in PACKAGES}
    return Build(_digest(roots.values()), tuple(sorted((roots["tool_server"] / "demo").glob("*.json"))))


def _root(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise StackError(
            StackProblem.PROGRAM_FAILED,
            f"The package {package} is not installed.",
            "Install this program again, whole.",
        )
    return Path(found.submodule_search_locations[0])


def _digest(roots: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for root in roots:
        for path in sorted(path for path in root.rglob("*") if path.suffix in SOURCE):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root.parent)} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()
