"""A database in which 100,000 workflows wait for a person, beside one in which none does.

Both are in the same cluster, and returns are driven in the one and the other by turns, so that the machine's moods
fall on both alike. The waiting ones are copies of one that was really driven there; every guard looks at each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from uuid import UUID

import psycopg

from host.engine import sweep
from host.engine.accept import Origin, accept, read_case, read_document
from host.engine.drive import drive
from host.engine.wake import queue_app, waker
from host.engine.worker import EXPIRED_ROUNDS, SWEEP_SECONDS
from host.stack.roles import OWNER, Side
from host.store import record
from host.store.migrate import migrate
from host.wiring import Driver, driver
from host.workflows.catalogue import CURRENT, WORKFLOWS
from tests.bench.figures import Figure
from tests.bench.returns import no_wake, principal, timed_return, warm
from tests.bench.stand import Stand, settings

WAITING, BATCH, COPIERS, DUE = 100_000, 10_000, 2, 100
RATIO_MAX, PAGE_MS_MAX = 1.2, 300.0
PAIRS, LOOKS = 80, 9
PAGE = 50
EXPIRED, EXPIRY_RETURNS, EXPIRY_SECONDS_MAX, SLOWER_MAX = 10_000, 40, 60.0, 1.5
_RUN_OUT = """
    UPDATE workflow SET wake_at = clock_now() WHERE workflow_id IN
    (SELECT workflow_id FROM workflow WHERE wake_reason = 'approval' LIMIT %(many)s)"""
CROWDED = "crowded"
EXAMPLE = Path(__file__).parents[2] / "examples" / "returns" / "high-value.json"

# Nobody's time is up before it is, so the clock of this database goes to where the copies' one approval runs out.
_DAY_LATER = """
    CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT clock_timestamp() + interval ''24 hours 1 minute'''"""
_ENDED = "SELECT count(*) FROM workflow WHERE state = 'EXPIRED'"

# Copies of one waiting workflow, with all that belongs to it. Ids sort by time, timers are spread over days.
_FRESH = """
    CREATE TEMPORARY TABLE fresh AS
    SELECT uuidv7() AS id, n FROM generate_series(1, %(many)s) n"""
_COPY = (
    """INSERT INTO workflow SELECT r.* FROM fresh f, workflow w, LATERAL jsonb_populate_record(w, jsonb_build_object(
         'workflow_id', f.id, 'request_id', f.id,
         'wake_at', w.wake_at + interval '1 hour' + f.n * interval '8 seconds')) r
       WHERE w.workflow_id = %(one)s""",
    """INSERT INTO checkpoint SELECT f.id, c.seq, c.move_id, c.reason, c.evidence, c.at
         FROM fresh f, checkpoint c WHERE c.workflow_id = %(one)s""",
    """INSERT INTO call (workflow_id, step, call_id, tool, contract_version, arguments, fingerprint, execution_state,
                         result, error, proposed_at, authorized_at, started_at, returned_at, delivered_at, verified_at)
       SELECT f.id, step, call_id, tool, contract_version, arguments, fingerprint, execution_state, result, error,
              proposed_at, authorized_at, started_at, returned_at, delivered_at, verified_at
         FROM fresh f, call c WHERE c.workflow_id = %(one)s""",
    """INSERT INTO approval_request
       SELECT f.id, r.version, r.action, r.action_digest, r.requested_at, r.expires_at
         FROM fresh f, approval_request r WHERE r.workflow_id = %(one)s""",
)


async def measure(made: Stand) -> list[Figure]:
    """Compare, and time what looks at all of them."""
    _make_database(made)
    links = replace(made.links, dsn=made.server.conninfo(CROWDED, "host_rt", passfile=_passfile(made, "host_rt")))
    async with driver(settings(1), made.links) as quiet, driver(settings(1), links) as crowded:
        began = time.perf_counter()
        await _copy(made, await one_waiting(crowded))
        copied = time.perf_counter() - began
        walls = await _by_turns(made, quiet, crowded)
        pages = await _pages(crowded)
        idle = await _timed(lambda: sweep.run_once(crowded.parts, no_wake))
        waking = await _waking(made, crowded, links.dsn)
        expiry = await _expiring(made, crowded)
    return [
        Figure("a running return's median wall, none waiting", median(walls[0]), "ms"),
        Figure("  with 100,000 waiting", median(walls[1]), "ms"),
        Figure("  ratio", median(walls[1]) / median(walls[0]), "", "≤", RATIO_MAX),
        *(Figure(f"first page of `kessai list{name}`, query", ms, "ms", "≤", PAGE_MS_MAX) for name, ms in pages),
        Figure("sweeper's pass, nothing due", idle, "ms"),
        Figure(f"sweeper's pass, {DUE} due and woken", waking, "ms"),
        *expiry,
        Figure("copying 100,000 past every guard", copied, "s"),
    ]


def _make_database(made: Stand) -> None:
    owner = OWNER[Side.HOST]
    with psycopg.connect(made.admin(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {CROWDED} TEMPLATE template0 OWNER {owner}")
    migrate(made.server.conninfo(CROWDED, owner, passfile=_passfile(made, owner)), WORKFLOWS, waived_by="bench")


def _passfile(made: Stand, role: str) -> str:
    return str(made.home.passfiles / role)


async def one_waiting(found: Driver) -> UUID:
    workflow, case = read_case(read_document(EXAMPLE.read_bytes()), CURRENT)
    kind = found.parts.kinds[workflow.kind, workflow.release]
    taken = await accept(found.parts.pool, kind, case, Origin(principal(found)), found.pins, no_wake)
    state = await drive(found.parts, taken.workflow_id)
    if state.task.state != "WAITING_APPROVAL":
        raise RuntimeError(f"it does not wait: {state.task.state}")
    return taken.workflow_id


async def _copy(made: Stand, one: UUID) -> None:
    await asyncio.gather(*(asyncio.to_thread(_copy_share, made, one) for _ in range(COPIERS)))
    with psycopg.connect(made.admin(CROWDED), autocommit=True) as admin:
        admin.execute("VACUUM (ANALYZE)")
        admin.execute("CHECKPOINT")


def _copy_share(made: Stand, one: UUID) -> None:
    with psycopg.connect(made.admin(CROWDED), autocommit=True) as admin:
        for _ in range(WAITING // BATCH // COPIERS):
            with admin.transaction():
                admin.execute(_FRESH, {"many": BATCH})
                for statement in _COPY:
                    admin.execute(statement.encode(), {"one": one})
                admin.execute("DROP TABLE fresh")


async def _by_turns(made: Stand, quiet: Driver, crowded: Driver) -> tuple[list[float], list[float]]:
    walls: tuple[list[float], list[float]] = [], []
    for found in (quiet, crowded):
        await warm(found, made)
    for pair in range(PAIRS):
        for which in (0, 1) if pair % 2 else (1, 0):
            walls[which].append(await timed_return((quiet, crowded)[which], made))
    return walls


async def _pages(found: Driver) -> list[tuple[str, float]]:
    async with found.parts.pool.connection() as connection:
        return [
            ("", await _timed(lambda: record.page(connection, None, None, record.LATEST, PAGE))),
            (
                " --state WAITING_APPROVAL",
                await _timed(lambda: record.page(connection, "WAITING_APPROVAL", None, record.LATEST, PAGE)),
            ),
            (" --state EXPIRED", await _timed(lambda: record.page(connection, "EXPIRED", None, record.LATEST, PAGE))),
            (" --exceptions", await _timed(lambda: record.exceptions(connection, PAGE))),
        ]


async def _waking(made: Stand, found: Driver, dsn: str) -> float:
    with psycopg.connect(made.admin(CROWDED), autocommit=True) as admin:
        admin.execute(
            "UPDATE workflow SET wake_at = clock_now(), wake_reason = 'retry' WHERE workflow_id IN "
            "(SELECT workflow_id FROM workflow WHERE control_state = 'tool_proposed' LIMIT %s)",
            (DUE,),
        )
    queue = queue_app(dsn)
    async with queue.open_async():
        began = time.perf_counter()
        woken = await sweep.run_once(found.parts, waker(queue))
        seconds = time.perf_counter() - began
    if woken != DUE:
        raise RuntimeError(f"{woken} were woken, not {DUE}")
    return seconds * 1000


async def _expiring(made: Stand, found: Driver) -> list[Figure]:
    """Let 10,000 approvals run out in the same instant, at a worker's own pace, while returns go on."""
    before = [await timed_return(found, made) for _ in range(EXPIRY_RETURNS)]
    with psycopg.connect(made.admin(CROWDED), autocommit=True) as admin:
        admin.execute(_DAY_LATER)
        admin.execute(_RUN_OUT, {"many": EXPIRED})
    began = time.perf_counter()
    sweeping = asyncio.create_task(_sweeping(found))
    meanwhile = []
    while not sweeping.done():
        meanwhile.append(await timed_return(found, made))
    seconds = time.perf_counter() - began
    await sweeping
    with psycopg.connect(made.admin(CROWDED)) as admin:
        ended = admin.execute(_ENDED).fetchall()[0][0]
    if ended != EXPIRED:
        raise RuntimeError(f"{ended} expired, not {EXPIRED}")
    return [
        Figure(f"{EXPIRED:,} approvals run out at once, until all have ended", seconds, "s", "≤", EXPIRY_SECONDS_MAX),
        Figure("  a running return meanwhile, against before", median(meanwhile) / median(before), "", "≤", SLOWER_MAX),
    ]


async def _sweeping(found: Driver) -> None:
    tried = 0
    while tried < EXPIRED:
        for _ in range(EXPIRED_ROUNDS):
            tried += await sweep.end_late(found.parts)
        await asyncio.sleep(SWEEP_SECONDS)


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    """Give the median wall milliseconds of a few."""
    found = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        await work()
        found.append((time.perf_counter() - began) * 1000)
    return median(found)
