"""Which code is installed: digests by which a start knows what it need not do again.

Files are read, never imported: the tool server is another program, whose code the host does not run.
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from host.stack.errors import StackError, StackProblem

PACKAGES = ("host", "tool_server", "shared_contracts")
SOURCE = {".py", ".sql", ".json", ".yaml", ".toml"}


@dataclass(frozen=True, slots=True)
class Build:
    """Digests of what the worker and the tool server run, of both together, and of the packaged shop.

    `code` decides whether migrations are looked at again.
    """

    code: str
    worker: str
    tool_server: str
    demo: str
    demo_file: Path


@cache
def installed_build() -> Build:
    """A few hundred small files, read once per process."""
    roots = {name: _root(name) for name in PACKAGES}
    demo_file = roots["tool_server"] / "demo" / "shop.json"
    return Build(
        code=_digest(list(roots.values())),
        worker=_digest([roots["host"], roots["shared_contracts"]]),
        tool_server=_digest([roots["tool_server"], roots["shared_contracts"]]),
        demo=_digest([demo_file]),
        demo_file=demo_file,
    )


def _root(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise StackError(
            StackProblem.PROGRAM_FAILED,
            f"The package {package} is not installed.",
            "Install this program again, whole.",
        )
    return Path(found.submodule_search_locations[0])


def _digest(roots: list[Path]) -> str:
    digest = hashlib.sha256()
    for root in roots:
        files = [root] if root.is_file() else (path for path in root.rglob("*") if path.suffix in SOURCE)
        for path in sorted(files):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root.parent)} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()
