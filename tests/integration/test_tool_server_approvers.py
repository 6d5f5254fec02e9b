"""Whom the tool server lets approve: an operator's act on a strict file, kept with who did it; the tables hold it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors

from shared_contracts.base import Money
from shared_contracts.operator import operator
from tests.integration.test_tool_server_cli import Run
from tests.support.tool_approvals import Person, trusted
from tests.support.tool_orders import order
from tests.support.tool_shop import ENTER, Shop, open_shop, within

TANAKA = Person.named("tanaka", substitutes=("suzuki",))


def thumbprint_of(x: str) -> str:
    """RFC 7638, written once more: a check of a file by the code that checks it would prove nothing."""
    members = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(members.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


@pytest.fixture
def shop(tmp_path: Path, run: Run) -> Shop:
    shop = open_shop(tmp_path, order("A-1"))
    run.settings(migrate_dsn=shop.database.owner, role_passwords=shop.database.passwords)
    return shop


def test_an_approver_is_trusted_by_a_named_operator_and_the_same_file_again_changes_nothing(
    shop: Shop, run: Run, tmp_path: Path
) -> None:
    file = str(TANAKA.file(tmp_path))
    assert run("approver", "trust", file) == 0
    assert "tanaka of acme is trusted: key " in run.out
    before = shop.rows("TABLE returns.approvers")
    assert run("approver", "trust", file) == 0
    assert "was trusted on these terms already" in run.out
    assert shop.rows("TABLE returns.approvers") == before
    (listed,) = run.json("approver", "list")
    assert {name: listed[name] for name in ("name", "tenant_id", "limit", "kid", "substitutes", "trusted_by")} == {
        "name": "tanaka", "tenant_id": "acme", "limit": {"amount": 500_000, "currency": "JPY"}, "kid": TANAKA.kid,
        "substitutes": ["suzuki"], "trusted_by": operator(),
    }  # fmt: skip
    assert run("approver", "list") == 0
    assert "tanaka" in run.out


def test_other_terms_are_a_new_row_and_the_old_one_stays(shop: Shop, run: Run, tmp_path: Path) -> None:
    more = TANAKA.on(limit=Money(amount=900_000, currency="JPY"))
    for person in (TANAKA, more, TANAKA):
        assert run("approver", "trust", str(person.file(tmp_path))) == 0
    assert "other terms" in run.out
    rows = shop.rows(
        "SELECT limit_amount, ended_how, ended_by, ended_at >= trusted_at FROM returns.approvers ORDER BY seq"
    )
    me = operator()
    assert rows == [(500_000, "replaced", me, True), (900_000, "replaced", me, True), (500_000, None, None, None)]
    assert len(run.json("approver", "list")) == 1


@pytest.mark.parametrize("by", ["name", "kid"])
def test_a_revoked_key_stays_revoked_and_its_person_needs_a_new_one(
    shop: Shop, run: Run, tmp_path: Path, by: str
) -> None:
    file = str(TANAKA.file(tmp_path))
    named = "tanaka" if by == "name" else TANAKA.kid
    assert run("approver", "trust", file) == 0
    assert run("approver", "revoke", named) == 0
    assert "is revoked" in run.out
    assert run("approver", "revoke", named) == 0
    assert "was revoked already" in run.out
    assert run("approver", "trust", file) == 2
    assert "for good; make a new key" in run.err
    newer = Person.named("tanaka")
    assert run("approver", "trust", str(newer.file(tmp_path))) == 0
    states = {row["kid"]: row["revoked_by"] for row in run.json("approver", "list")}
    assert states == {TANAKA.kid: operator(), newer.kid: None}
    assert run("approver", "revoke", "tanaka") == 0
    assert newer.kid in run.out


@pytest.mark.parametrize("begins", ["-", "-h"])
def test_a_key_whose_id_begins_with_a_dash_is_revoked_like_any_other(shop: Shop, run: Run, begins: str) -> None:
    dashed = next(person for person in iter(lambda: Person.named("dash"), None) if person.kid.startswith(begins))
    asyncio.run(trusted(shop, dashed))
    assert run("approver", "revoke", dashed.kid) == 0
    assert shop.one("SELECT ended_how FROM returns.approvers") == "revoked"


def test_a_person_has_one_key_and_a_key_has_one_person(shop: Shop, run: Run, tmp_path: Path) -> None:
    assert run("approver", "trust", str(TANAKA.file(tmp_path))) == 0
    assert run("approver", "trust", str(Person.named("tanaka").file(tmp_path))) == 2
    assert "a person has one key at a time" in run.err
    for other in (TANAKA.on(name="tanaka2"), TANAKA.on(tenant_id="other")):
        assert run("approver", "trust", str(other.file(tmp_path))) == 2
        assert "a key stands for one person" in run.err
    assert shop.one("SELECT count(*) FROM returns.approvers") == 1


def test_a_name_of_two_tenants_is_revoked_by_its_key(shop: Shop, run: Run) -> None:
    asyncio.run(trusted(shop, TANAKA, Person.named("tanaka", tenant_id="other")))
    assert run("approver", "revoke", "tanaka") == 2
    assert TANAKA.kid in run.err
    assert run("approver", "revoke", TANAKA.kid) == 0
    assert run("approver", "revoke", "tanaka") == 0
    assert shop.one("SELECT count(*) FROM returns.trusted_approvers") == 0


def plain() -> dict[str, Any]:
    return dict(json.loads(TANAKA.public.model_dump_json()))


def keyed(x: str) -> dict[str, Any]:
    return {**plain(), "key": {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": thumbprint_of(x)}}


def terms(**changes: Any) -> dict[str, Any]:
    return {**plain(), "approver": {**plain()["approver"], **changes}}


def text_of(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


GOOD_X = str(plain()["key"]["x"])
LAST = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
UNUSED_BITS = GOOD_X[:-1] + LAST[LAST.index(GOOD_X[-1]) ^ 1]
BAD_FILES: list[tuple[Any, str]] = [
    ("", "is not JSON"),
    ("[]", "should be an object"),
    ("{}", "approver: Field required"),
    (json.dumps(plain()).replace('"name"', '"name": "suzuki", "name"', 1), "twice"),
    ("x" * 70_000, "is larger than"),
    (json.dumps(plain()).replace("500000", "5e5"), "a float has no canonical JSON"),
    ({**plain(), "more": 1}, "more: Extra inputs"),
    ({**plain(), "key": {**plain()["key"], "kid": thumbprint_of("A" * 43)}}, "not the thumbprint"),
    ({**plain(), "key": {**plain()["key"], "kid": "k-1"}}, "key.kid"),
    ({**plain(), "key": {**plain()["key"], "d": "secret-canary"}}, "private half"),
    ({**plain(), "key": {**plain()["key"], "crv": "X25519"}}, "key.crv"),
    ({**plain(), "key": {**plain()["key"], "alg": "EdDSA"}}, "key.alg"),
    (keyed(text_of(bytes(31))), "key.x"),
    (keyed(text_of(bytes(33))), "key.x"),
    (keyed(UNUSED_BITS), "not spelt as its 32 bytes are"),
    (keyed(text_of(bytes(32))), "small order"),
    (keyed(text_of(b"\x01" + bytes(31))), "small order"),
    (keyed(text_of(b"\xff" * 32)), "small order or not canonical"),
    (keyed(text_of(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))), "small order"),
    (terms(name="Tanaka"), "approver.name"),
    (terms(name=""), "approver.name"),
    (terms(limit={"amount": -1, "currency": "JPY"}), "approver.limit.amount"),
    (terms(limit={"amount": "500000", "currency": "JPY"}), "approver.limit.amount"),
    (terms(limit={"amount": 500_000, "currency": "yen"}), "approver.limit.currency"),
    (terms(substitutes_after_seconds=86_401), "substitutes_after_seconds"),
    (terms(substitutes=["tanaka"]), "names tanaka as the own substitute"),
    (terms(substitutes=["suzuki", "suzuki"]), "names somebody twice"),
]


@pytest.mark.parametrize(("content", "told"), BAD_FILES, ids=lambda value: str(value)[:30])
def test_a_file_that_is_not_right_in_every_respect_is_refused_with_its_reason(
    shop: Shop, run: Run, tmp_path: Path, content: Any, told: str
) -> None:
    file = tmp_path / "approver.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    assert run("approver", "trust", str(file)) == 2
    assert str(file) in run.err
    assert told in run.err
    assert "secret-canary" not in run.out + run.err
    assert shop.one("SELECT count(*) FROM returns.approvers") == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["trust", "/nowhere/a.json"], "/nowhere/a.json cannot be read"),
        (["trust", "/"], "cannot be read"),
        (["trust"], "Missing argument"),
        (["revoke", "nobody"], "there is no approver 'nobody'"),
        (["revoke", ""], "there is no approver ''"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_bad_input_says_what_to_mend(shop: Shop, run: Run, arguments: list[str], told: str) -> None:
    assert run("approver", *arguments) == 2
    assert told in run.err


def test_many_operators_at_once_leave_one_standing_row(shop: Shop) -> None:
    async def all_of_them() -> None:
        limits = (Money(amount=amount, currency="JPY") for amount in range(100_000, 100_010))
        await asyncio.gather(*(trusted(shop, TANAKA.on(limit=limit)) for limit in limits))

    asyncio.run(all_of_them())
    assert shop.one("SELECT count(*) FROM returns.trusted_approvers") == 1
    assert shop.one("SELECT count(*) FROM returns.approvers") == 10


COPY: LiteralString = """
    INSERT INTO returns.approvers (kid, public_key, tenant_id, approver, limit_amount, limit_currency, substitutes,
                                   substitutes_after_seconds, trusted_by)
    SELECT %s, public_key, tenant_id, %s, limit_amount, limit_currency, substitutes, substitutes_after_seconds, 'raw'
    FROM returns.approvers LIMIT 1"""


@pytest.mark.parametrize(
    ("kid", "name", "broken"),
    [
        ("A" * 43, "tanaka", "one_standing_key_per_approver"),
        (TANAKA.kid, "other", "one_standing_row_per_key"),
        ("short", "other", "approvers_kid_check"),
    ],
    ids=["a second key", "a second row", "no thumbprint"],
)
def test_the_tables_hold_one_key_per_person_for_their_owner_too(shop: Shop, kid: str, name: str, broken: str) -> None:
    asyncio.run(trusted(shop, TANAKA))
    with psycopg.connect(shop.database.owner) as owner, pytest.raises(errors.IntegrityError) as caught:
        owner.execute(COPY, (kid, name))
    assert caught.value.diag.constraint_name == broken


END: LiteralString = "UPDATE returns.approvers SET ended_at = now(), ended_by = 'me', ended_how = 'revoked'"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE returns.approvers SET limit_amount = 10",
        "UPDATE returns.approvers SET limit_amount = 10, ended_at = now(), ended_by = 'me', ended_how = 'revoked'",
        "DELETE FROM returns.approvers",
        "TRUNCATE returns.approvers",
        "UPDATE returns.approvals_used SET event_id = 'E-2'",
        "DELETE FROM returns.approvals_used",
        "TRUNCATE returns.approvals_used",
    ],
)
def test_a_row_of_trust_ends_and_changes_in_nothing_else(shop: Shop, change: LiteralString) -> None:
    asyncio.run(trusted(shop, TANAKA))
    with psycopg.connect(shop.database.owner) as owner:
        with pytest.raises(errors.CheckViolation, match="is append-only"), owner.transaction():
            owner.execute(change)
        owner.execute(END)
        back = "UPDATE returns.approvers SET ended_at = NULL, ended_by = NULL, ended_how = NULL"
        with pytest.raises(errors.CheckViolation, match="is append-only"), owner.transaction():
            owner.execute(back)


def test_no_event_is_used_without_the_return_of_its_key(shop: Shop) -> None:
    with psycopg.connect(shop.database.dsn("tools_returns")) as family:
        family.execute(ENTER, within(key="no-such-key"))
        with pytest.raises(errors.ForeignKeyViolation):
            family.execute("INSERT INTO returns.approvals_used VALUES ('acme', 'E-1', 'no-such-key', 'tanaka')")


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("tools_returns", "SELECT * FROM returns.approvers"),
        ("tools_returns", "SELECT * FROM returns.approvals_used"),
        ("tools_returns", COPY.replace("%s", "'x'")),
        ("tools_returns", END),
        ("tools_orders", "SELECT * FROM returns.trusted_approvers"),
        ("tools_policies", "SELECT * FROM returns.trusted_approvers"),
        ("tools_notices", "SELECT * FROM returns.trusted_approvers"),
        ("tools_notices", "INSERT INTO returns.approvals_used VALUES ('acme', 'E-1', 'K', 'tanaka')"),
        ("tools_auditor", "INSERT INTO returns.approvals_used VALUES ('acme', 'E-1', 'K', 'tanaka')"),
        ("tools_auditor", END),
    ],
)
def test_no_role_of_a_running_server_makes_an_approver(shop: Shop, role: str, statement: LiteralString) -> None:
    with (
        psycopg.connect(shop.database.dsn(role)) as connection,
        pytest.raises(errors.InsufficientPrivilege),
    ):
        connection.execute(statement)


def test_the_auditor_reads_who_was_trusted_and_what_was_used(shop: Shop) -> None:
    asyncio.run(trusted(shop, TANAKA))
    with psycopg.connect(shop.database.dsn("tools_auditor"), autocommit=True) as auditor:
        assert auditor.execute("SELECT approver FROM returns.approvers").fetchall() == [("tanaka",)]
        assert auditor.execute("SELECT * FROM returns.approvals_used").fetchall() == []
