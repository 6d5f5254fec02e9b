"""The command line as a user has it: real processes, one home, and what they printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from host.stack.status import status
from tests.support.cluster import at_once
from tests.support.forked import Loaded

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "returns"
SECONDS_MAX = 110  # below the timeout of a test, so that its output is seen


@dataclass(frozen=True)
class Said:
    """What came of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """`kessai` with a home of its own and nothing else of ours in its environment."""

    home: Path
    settings: Mapping[str, str]

    def environment(self, **more: str) -> dict[str, str]:
        foreign = ("KESSAI_", "PG", "COLUMNS", "NO_COLOR", "FORCE_COLOR")
        plain = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return (
            plain
            | {"KESSAI_HOME": str(self.home), "PYTHONPATH": str(ROOT), "TERM": "dumb"}
            | dict(self.settings)
            | more
        )

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *arguments], env=self.environment(**more), text=True, cwd=ROOT, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def plainly(self, *arguments: str, **more: str) -> Said:
        """Run it in a process of its own that loads everything itself: for what changes which modules there are."""
        with self.start(*arguments, **more) as process:
            out, err = process.communicate(timeout=SECONDS_MAX)
        return Said(process.returncode, out, err)

    def __call__(self, *arguments: str, given: str = "", **more: str) -> Said:
        if "PYTHONPATH" in self.settings and not given:  # other code than what is loaded already
            return self.plainly(*arguments, **more)
        with TemporaryFile() as read, TemporaryFile() as out, TemporaryFile() as err:
            read.write(given.encode())
            read.seek(0)
            streams = (read.fileno(), out.fileno(), err.fileno())
            code = _loaded().run(arguments, self.environment(**more), streams, SECONDS_MAX)
            said = Said(code, *(os.pread(one, 1 << 26, 0).decode() for one in streams[1:]))
        assert "Traceback" not in said.out + said.err, said.out + said.err
        return said

    def with_settings(self, **settings: str) -> Cli:
        return Cli(self.home, {**self.settings, **settings})

    def status(self) -> dict[str, Any]:
        return dict(self("status", "--json").json())

    def part(self, name: str) -> dict[str, Any]:
        """Read from where `kessai status` reads it, which as a command looks at much else."""
        return asdict(next(part for part in at_once(status(self.home)).parts if part.name == name))

    def dsn(self, database: str, role: str) -> str:
        """The connection of a role of the running stack; the password stays in its file."""
        port = self.part("postgres")["port"]
        passfile = str(self.home / "passfiles" / role)
        return make_conninfo(host="127.0.0.1", port=port, dbname=database, user=role, passfile=passfile)

    def owner(self, database: str) -> psycopg.Connection[Any]:
        """The owner's own connection, who may try anything."""
        return psycopg.connect(self.dsn(database, f"{database}_owner"), autocommit=True)


COMMAND = (sys.executable, "-m", "host.cli")


@cache
def _loaded() -> Loaded:
    return Loaded(ROOT, Cli(ROOT, {}).environment())


def case(name: str, **changes: Any) -> dict[str, Any]:
    """An example, changed."""
    return {**json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")), **changes}


def written(folder: Path, document: Any) -> str:
    """A case's file."""
    file = folder / "case.json"
    file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    return str(file)
