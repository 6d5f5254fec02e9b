"""What `doctor` says of the lines that may leave this machine: who can read them, and whether who answers is proven.

Invariant: of a connection string nothing is repeated but its hosts and what it says of TLS. A warning is no failure:
between two containers of one machine a line may be what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from host.database import NO_CONNECTION_STRING
from host.stack.doctor import Check

_HERE, _PROVEN = "stays on this machine", "TLS, and who answers is proven"
_UNPROVEN = frozenset({"require", "verify-ca"})


def checks(server_url: str | None, dsns: Mapping[str, str]) -> Iterator[Check]:
    """Judge the address and each connection string by the name of its setting."""
    if server_url is not None:
        yield _to_the_tool_server("line of KESSAI_SERVER_URL", server_url)
    for name, dsn in dsns.items():
        yield _to_a_database(name, dsn)


def _to_the_tool_server(check: str, url: str) -> Check:
    try:
        address = urlsplit(url)
        host = None if address.port == 0 else address.hostname
    except ValueError:
        host = None
    if host is None or address.scheme not in {"http", "https"}:
        return Check(check, False, "KESSAI_SERVER_URL is no address", "write https://HOST/mcp")
    if address.scheme == "https":
        return Check(check, True, _PROVEN, "")
    if _is_here(host):
        return Check(check, True, _HERE, "")
    what = f"http to {host}: whoever is on the way can read what is sent, tokens too, and change it"
    return Check(check, True, what, "give the tool server an https address")


def _to_a_database(name: str, dsn: str) -> Check:
    check, mend = f"line of {name}", f"write sslmode=verify-full sslrootcert=FILE into {name}"
    try:
        said = _filled_in(dsn)
    except psycopg.ProgrammingError:  # its text quotes the string, which may hold a password
        return Check(check, False, f"{name} {NO_CONNECTION_STRING}", "mend the variable that is named")
    if said["service"]:
        return Check(check, True, "leads where its service says, which is not looked up here", mend)
    away = [host for host in said["hostaddr" if said["hostaddr"] else "host"].split(",") if not _is_here(host)]
    mode = "verify-full" if said["sslrootcert"] == "system" else said["sslmode"]  # libpq takes no weaker one with it
    if not away or mode == "verify-full":
        return Check(check, True, _PROVEN if away else _HERE, "")
    where = f"to {', '.join(away)} with sslmode={mode}"
    if mode in _UNPROVEN:
        return Check(check, True, f"{where}: another server could answer in its place", mend)
    return Check(check, True, f"{where}: whoever is on the way may read and change what is sent", mend)


def _filled_in(dsn: str) -> dict[str, str]:
    """What libpq makes of it, with its variables and defaults."""
    found = {one.keyword.decode(): (one.val or b"").decode() for one in Conninfo.get_defaults()}
    return found | {name: str(value) for name, value in conninfo_to_dict(dsn).items()}


def _is_here(host: str) -> bool:
    """A directory, or nothing, is a socket of this machine."""
    if host == "" or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
