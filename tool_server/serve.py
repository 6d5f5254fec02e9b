"""Run the tool server in this process until it is told to stop; then finish what is in hand.

Invariant: from the stop on, `/readyz` answers 503 and new calls are refused as never executed, while the calls in
hand are carried to their end (at most DRAIN_SECONDS_MAX, above the longest tool's timeout); then the port is closed.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
import uvicorn
import uvloop
from starlette.applications import Starlette

from tool_server import log as logs
from tool_server.app import build_app
from tool_server.errors import AddressError, PortInUseError
from tool_server.http import REFUSED_ABOVE, BoundedHttp
from tool_server.life import Life
from tool_server.mcp_server import DispatcherProtocol
from tool_server.settings import Settings

log = structlog.get_logger()

DRAIN_SECONDS_MAX = 20
KEEP_ALIVE_SECONDS = 75  # clients keep idle connections for less, so that they, not we, close first
_OTHER_FILES = 256  # that a process has open beside its callers' connections: those to its database, its keys
_BACKLOG = 512
_NEW_OBJECTS = 10_000  # between two looks for cycles: a request makes hundreds of objects, and few of them are in one


class _Uvicorn(uvicorn.Server):
    """uvicorn without its own signal handlers, which would end the process by the signal after a clean stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `run_server`."""
        yield


def bind(host: str, port: int) -> socket.socket:
    """Listen at the address; raises PortInUseError or AddressError. Port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise AddressError(f"{host}:{port} cannot be listened at: {error.strerror}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(host, port) from None
        raise AddressError(f"{host}:{port} cannot be listened at: {error.strerror}") from None
    return listener


async def serve(
    app: Starlette,
    listener: socket.socket,
    stop: asyncio.Event,
    connections: int,
    http: type[BoundedHttp] = BoundedHttp,
) -> None:
    """Serve the application on a bound socket, and close it, when `stop` is set and what is in hand is done.

    With twice as many `connections`, all at work: 503; those that ask for nothing give way before (`tool_server.http`).
    """
    life: Life = app.state.life
    with listener:
        async with app.router.lifespan_context(app):
            log.info("serving", address=listener.getsockname())
            server = _Uvicorn(_config(app, connections, http))
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            await _drain(life)
            server.should_exit = True
            await serving
    log.info("stopped")


async def _drain(life: Life) -> None:
    life.draining = True
    log.info("draining")
    try:
        async with asyncio.timeout(DRAIN_SECONDS_MAX):
            await life.idle()
    except TimeoutError:
        log.warning("drain_cut_short", seconds=DRAIN_SECONDS_MAX)


def _config(app: Starlette, connections: int, http: type[BoundedHttp]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=http,
        ws="none",
        lifespan="off",  # entered by `serve`, whose caller then sees what kept it from opening
        log_config=None,
        access_log=False,  # an address line can hold a token that somebody put into it
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
        limit_concurrency=connections * REFUSED_ABOVE,
    )


async def _serve_until_signalled(settings: Settings, dispatcher: DispatcherProtocol) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    app = build_app(settings, dispatcher)
    gc.freeze()  # what is there now stays for good, and need not be looked through again and again
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
    await serve(app, bind(settings.host, settings.port), stop, settings.connections)


def _allow_files(count: int) -> None:
    """Raise this process's own limit where it is too low for its connections, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < count:
        log.warning("few_files", allowed=allowed, wanted=count)


def run_server(settings: Settings, dispatcher: DispatcherProtocol) -> None:
    """Serve in this process until SIGTERM or SIGINT; raises ToolServerError where it cannot start."""
    logs.configure()
    _allow_files(settings.connections * REFUSED_ABOVE + _OTHER_FILES)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve_until_signalled(settings, dispatcher))
