"""No address that a call or a token brings along is gone to: none can be given, and nothing here would fetch it."""

from __future__ import annotations

import ast
import copy
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import host
import tool_server
from shared_contracts.contract import Tool
from shared_contracts.tools import TOOLS
from tests.support.tool_prepared import good
from tests.unit.test_wire_schemas import nodes
from tool_server.call import Refused
from tool_server.keys import Keyring
from tool_server.keys import TrustError as NotTrusted
from tool_server.validation import Checked, check_arguments

EVERY_TOOL = [pytest.param(tool, id=tool.name) for tool in TOOLS.values()]
ADDRESSES = (
    "http://169.254.169.254/latest/meta-data/", "https://127.0.0.1:8801/mcp", "http://[::1]/", "http://10.0.0.1/",
    "http://192.168.0.1/", "http://localhost/", "http://2130706433/", "//internal.example/", "file:///etc/passwd",
    "gopher://127.0.0.1:25/", "ftp://internal.example/", "http://order.example@127.0.0.1/", "jar:http://a.example!/",
)  # fmt: skip
NAMES_AN_ADDRESS = re.compile(r"url|uri|href|link|host|endpoint|callback|webhook|domain|address|proxy|path|file")
# Which modules have to do with the network at all, and with what.
NETWORK = {
    "socket",
    "ssl",
    "http",
    "ftplib",
    "smtplib",
    "aiosmtplib",
    "aiohttp",
    "httpx",
    "httpx2",
    "requests",
    "urllib3",
}
TOOL_SERVER = {"mail.py": {"aiosmtplib"}, "serve.py": {"socket"}}  # to its operator's mail server; to listen
HOST = {  # to its operator's tool server, and for a suite of ours to loopback; the name and the ports of this machine
    **{f"tool_client/{name}.py": {"httpx2"} for name in ("answer", "connection", "link")},
    **{f"tool_client/{name}.py": {"aiohttp"} for name in ("heads", "readyz")},
    "tool_client/transport.py": {"aiohttp", "httpx2"},
    **{f"evaluation/{name}.py": {"aiohttp"} for name in ("contract_wire", "relay", "wire")},
    **{name: {"socket"} for name in ("stack/ports.py", "wiring.py")},
}
OPENING = ["commit_wire.py", "processes.py", "knock.py"]  # a proxy of ours and two looks at whether somebody listens
FETCHES = {"get", "post", "put", "patch", "delete", "head", "request", "ws_connect"}


def texts(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where in a document there is a text."""
    match value:
        case str():
            yield at
        case dict():
            for name, member in value.items():
                yield from texts(member, (*at, name))
        case list():
            for number, member in enumerate(value):
                yield from texts(member, (*at, number))


def put(document: dict[str, Any], at: tuple[str | int, ...], text: str) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    inner: Any = changed
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = text
    return changed


@pytest.mark.parametrize("tool", EVERY_TOOL)
def test_no_argument_takes_an_address(tool: Tool) -> None:
    arguments = good(tool)
    assert isinstance(check_arguments(tool, arguments), Checked)
    places = list(texts(arguments))
    assert places != []
    for at in places:
        for address in ADDRESSES:
            assert isinstance(check_arguments(tool, put(arguments, at, address)), Refused), (at, address)


@pytest.mark.parametrize("tool", EVERY_TOOL)
def test_no_argument_is_one_by_its_name_or_its_format(tool: Tool) -> None:
    named = {name for node in nodes(tool.input_schema) for name in node.get("properties", ())}
    assert {name for name in named if NAMES_AN_ADDRESS.search(name)} == set()
    assert [node["format"] for node in nodes(tool.input_schema) if "format" in node] == []


def imported(module: Path) -> set[str]:
    """The first parts of what a module imports."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            whole = node.module
            found.add("urllib3" if whole == "urllib.request" else whole.partition(".")[0])
    return found


def modules(package: Any) -> list[Path]:
    return sorted(Path(package.__file__).parent.rglob("*.py"))


def networked(package: Any) -> dict[str, set[str]]:
    root = Path(package.__file__).parent
    found = {str(one.relative_to(root)): imported(one) & NETWORK for one in modules(package)}
    return {name: of for name, of in found.items() if of}


def test_the_tool_server_has_nothing_to_fetch_with() -> None:
    assert networked(tool_server) == TOOL_SERVER
    assert [one for one in modules(tool_server) if "open_connection" in one.read_text()] == []


def test_whatever_of_the_host_knows_the_network_is_named_here() -> None:
    assert networked(host) == HOST
    assert [one.name for one in modules(host) if "open_connection" in one.read_text()] == OPENING


def test_no_request_of_the_host_follows_a_redirect() -> None:
    followed, seen = [], 0
    for module in modules(host):
        if "aiohttp" not in imported(module):
            continue
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FETCHES:
                if not ast.unparse(node.func.value).endswith("http"):
                    continue
                seen += 1
                kept = {word.arg: ast.unparse(word.value) for word in node.keywords}
                if kept.get("allow_redirects") != "False":
                    followed.append(f"{module.name}:{node.lineno}")
    assert seen >= 4
    assert followed == []


def test_keys_are_never_fetched_whatever_the_issuers_file_says(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        issuers = tmp_path / "issuers.json"
        address = f"http://127.0.0.1:{port}/jwks.json"
        issuers.write_text(json.dumps([{"issuer": "https://host.example", "jwks_file": address, "tenants": "every"}]))
        with pytest.raises(NotTrusted):
            Keyring(issuers)
        with pytest.raises(BlockingIOError):  # nobody has come
            listener.accept()
