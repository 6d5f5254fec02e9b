"""What the commands do with both sides' records: how old a line gets is a setting, and only a whole record is cut."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from host.commands import audit
from host.commands.exits import Exit
from host.settings import Settings, SettingsError
from shared_contracts.base import dump
from tests.integration.test_record_seal import SPOILED
from tests.support.engine import advance_clock, asynchronous
from tests.support.sealing import Kept, record, worked_shop
from tests.support.tool_prepared import ORDER
from tests.support.tool_shop import Shop, ask, given
from tool_server import cli
from tool_server.dispatch import Dispatcher

DAYS = 10  # the age of what is old
HELD = (
    "SELECT (SELECT count(*) FROM audit WHERE resource = 'OLD'), (SELECT count(*) FROM audit WHERE resource = 'NEW'),"
    " (SELECT count(*) FROM seal_head WHERE at < now() - interval '1 day')"
)
HELD_THERE = (
    "SELECT (SELECT count(*) FROM calls.log WHERE at < now() - interval '1 day'),"
    " (SELECT count(*) FROM calls.log WHERE at > now() - interval '1 day'),"
    " (SELECT count(*) FROM calls.seal_head WHERE at < now() - interval '1 day')"
)
LOOKED_AT = ("removed", "inserted", "reordered")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return worked_shop(tmp_path)


def settings(kept: Kept, directory: Path, **more: Any) -> tuple[Settings, list[Path]]:
    """An owner's and the auditors' settings, and the file of public keys."""
    keys = directory / "seal-keys.json"
    keys.write_text(json.dumps(dump(kept.keys)))
    links = {"audit_host_dsn": kept.auditors.host, "audit_tools_dsn": kept.auditors.tools, "migrate_dsn": kept.admin}
    return Settings(**(links | more)), [keys]


async def kessai_tools_cut(monkeypatch: pytest.MonkeyPatch, dsn: str, days: int | None, *options: str) -> int:
    """Run the other program's command line, whose loop is its own."""
    monkeypatch.setenv("KESSAI_TOOLS_MIGRATE_DSN", dsn)
    monkeypatch.delenv("KESSAI_TOOLS_RECORD_DAYS", raising=False)
    if days is not None:
        monkeypatch.setenv("KESSAI_TOOLS_RECORD_DAYS", str(days))
    monkeypatch.setattr(sys, "argv", ["kessai-tools", "cut", *options])

    def run() -> int:
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0)

    return await asyncio.to_thread(run)


def set_back(kept: Kept, days: int) -> None:
    """Set both databases' clocks back by so many days; by less than none, to now again."""
    advance_clock(kept.parts, -86_400 * days)
    told = f"clock_timestamp() - make_interval(days => {max(days, 0)})"
    with psycopg.connect(kept.shop.database.admin) as admin:
        clock = f"CREATE OR REPLACE FUNCTION public.clock_now() RETURNS timestamptz LANGUAGE sql RETURN {told}"
        admin.execute(clock.encode())


async def call(shop: Shop) -> None:
    async with Dispatcher(shop.settings) as tools:
        given(await ask(tools, "get_order", ORDER))


@asynchronous
async def test_what_is_older_than_the_set_days_goes_on_each_side_and_nothing_else(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with record(shop) as kept:
        kept.tools("UPDATE calls.log SET at = at - interval '10 days'")
        set_back(kept, DAYS)
        kept.note("OLD")
        await kept.seal()
        set_back(kept, -DAYS)
        kept.note("NEW")
        await call(shop)
        await kept.seal()
        whole = (kept.host(HELD), kept.tools(HELD_THERE))
        assert [rows[0][:2] for rows in whole] == [(1, 1), (3, 1)]
        assert all(rows[0][2] > 0 for rows in whole)
        for days in (DAYS + 1, DAYS - 1):
            own, keys = settings(kept, tmp_path, record_days=days)
            assert await audit.cut(own, keys, verify_first=True, as_json=True) is Exit.DONE
            assert await kessai_tools_cut(monkeypatch, shop.database.owner, days) == 0
            if days > DAYS:
                assert (kept.host(HELD), kept.tools(HELD_THERE)) == whole
        # of the old heads the one is left that the record begins behind
        assert (kept.host(HELD), kept.tools(HELD_THERE)) == ([(0, 1, 1)], [(0, 1, 1)])
        await kept.seal()
        assert await audit.verify(own, None, keys, as_json=True) is Exit.DONE
        none, keys = settings(kept, tmp_path)
        with pytest.raises(SettingsError, match="KESSAI_RECORD_DAYS"):
            await audit.cut(none, keys, verify_first=True, as_json=True)
        assert await kessai_tools_cut(monkeypatch, shop.database.owner, None) == 2


@asynchronous
async def test_what_is_wrong_is_named_by_the_commands_and_nothing_of_it_is_cut(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    async with record(shop) as kept:
        await kept.seal()
        put_back = kept.remember()
        numbers = kept.numbers("N-2")
        own, keys = settings(kept, tmp_path, record_days=1)
        tried = set()
        for side, statements, kind, named in SPOILED:
            if kind not in LOOKED_AT or (side, kind) in tried:
                continue
            tried.add((side, kind))
            (kept.host if side == "host" else kept.tools)(*(numbers(one) for one in statements))
            capsys.readouterr()
            assert await audit.verify(own, None, keys, as_json=True) is Exit.FAILED
            told = {one["side"]: one["findings"] for one in json.loads(capsys.readouterr().out)["sides"]}
            assert {finding["kind"] for finding in told[side]} == {kind}
            assert any(row.startswith(numbers(named)) for finding in told[side] for row in finding["rows"])
            put_back()
        assert tried == {(side, kind) for side in ("host", "tools") for kind in LOOKED_AT}
        kept.host("UPDATE seal_head SET at = at - interval '2 days'", "DELETE FROM audit WHERE resource = 'N-2'")
        held = kept.host("SELECT count(*) FROM seal_link"), kept.host("SELECT count(*) FROM audit")
        assert await audit.cut(own, keys, verify_first=True, as_json=False) is Exit.FAILED
        assert numbers("audit {N2}") in capsys.readouterr().out
        assert (kept.host("SELECT count(*) FROM seal_link"), kept.host("SELECT count(*) FROM audit")) == held
        alone = Settings(migrate_dsn=kept.admin, record_days=1)
        with pytest.raises(SettingsError, match="KESSAI_AUDIT_HOST_DSN"):
            await audit.cut(alone, keys, verify_first=True, as_json=False)
        assert await audit.cut(alone, [], verify_first=False, as_json=False) is Exit.DONE
        assert kept.host("SELECT count(*) FROM seal_link") == [(0,)]
        put_back()
        kept.forget()


# of a log that is older than what is kept: what is done to it, and whether that is seen from this side alone
SPOILED_THERE = [
    (("DELETE FROM calls.log WHERE seq = {CALL}",), True),
    (("UPDATE calls.log SET sub = 'nobody' WHERE seq = {CALL}",), True),
    (("DELETE FROM calls.seal_link WHERE n = 1",), True),
    (("DELETE FROM calls.seal_link WHERE n = (SELECT max(n) FROM calls.seal_link)",), True),
    (("UPDATE calls.seal_link SET sealed = replace(sealed, 'create_return', 'get_order')",
      "UPDATE calls.log SET tool = 'get_order'"), True),
    (("UPDATE calls.seal_chain SET chain_id = gen_random_uuid()",), True),
    (("UPDATE calls.seal_head SET signed = 'x'",), False),
]  # fmt: skip


@asynchronous
async def test_the_tool_servers_own_command_cuts_no_line_that_is_not_what_was_sealed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    owner, links = shop.database.owner, "SELECT count(*) FROM calls.seal_link"
    async with record(shop) as kept:
        await kept.seal()
        kept.tools("UPDATE calls.seal_head SET at = at - interval '2 days'")
        put_back, numbers = kept.remember(), kept.numbers("N-2")
        for statements, seen in SPOILED_THERE:
            kept.tools(*(numbers(one) for one in statements))
            held = kept.tools(links)
            ended = await kessai_tools_cut(monkeypatch, owner, 1)
            assert (ended, kept.tools(links) == held) == ((1, True) if seen else (0, False)), statements
            assert ("is not what was sealed; nothing was cut" in capsys.readouterr().err) is seen
            if seen:
                assert await kessai_tools_cut(monkeypatch, owner, 1, "--unverified") == 0
                assert kept.tools(links) == [(0,)]
            put_back()
        kept.forget()
