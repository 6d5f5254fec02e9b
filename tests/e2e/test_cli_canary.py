"""What anybody typed, anywhere, is in no log, no handover, no export and no report: one table of places and outputs.

Names of people who do not exist, numbers in every width, an address and a secret, on a stack that works.
"""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from psycopg import sql

from tests.support.cli import Cli, case
from tests.support.deciding import approvers, digest_of
from tests.support.tool_orders import line, order, recipient
from tool_server.load import load
from tool_server.seed import Seed

pytestmark = pytest.mark.xdist_group("cli")

PLACES = {
    "an order's note": "置き配は山田花子へ ０９０－１１１１－２２２２",
    "a product's name": "名入れ万年筆 佐藤太郎様",
    "a recipient's name": "ﾔﾏﾀﾞ ﾊﾅｺ",
    "a recipient's address": "yamada.hanako@mail.example",
    "a customer's words": "鈴木一郎です。03-3333-4444 か suzuki.ichiro@mail.example へ",
    "words of a denial": "田中次郎様に電話で確認済み +81-90-5555-6666",
    "words of a review": "高橋三郎様がご立腹 090.7777.8888",
    "words of a stop": "伊藤四郎様の件 ０３（９９９９）００００",
    "a case's file name": "渡辺五郎",
    "the environment": "canary-secret-7f3a9c",
    "a request without a token": "中村六子 canary-body-5d1e",
    "a request's id": "canary-request-6b2d-",
    "words of a rollout": "小林七子様は除外 +81 3 1212 3434",
}
READ = ("list", "doctor", "status", "token list", "approver list", "release list", "rollout status")
OUTPUTS = (
    "logs", "handover", "handover --html", "handover --json", "export", "explain", "diagnose", "reconcile", "show",
    "list --exceptions", *READ,
)  # fmt: skip
# what RUNBOOK.md says of each, with what not to write there
SHOWN = {
    ("words of a stop", "status"),  # whoever starts work has to know why it is stopped
    ("words of a rollout", "rollout status"),
    # the record itself, which has what the sheets leave out
    *((place, "show") for place in ("a request's id", "words of a denial", "words of a review")),
    # whoever takes a case over reads why it is stopped, and leads it back by its id
    *((place, name) for name in OUTPUTS[1:4] for place in ("words of a stop", "a request's id")),
}
HELD = {
    "host": ("workflow", "approval", "stop_log", "audit", "rollout_log"),
    "tools": ("orders.orders", "orders.lines", "notices.recipients"),
}
PASSING = {"a case's file name", "the environment", "a request without a token"}  # which nothing keeps
CASES = ("CANARY-DEAR", "CANARY-BATTERY")


def plain(text: str) -> str:
    """Letters and digits of one width, and none of them escaped."""
    unescaped = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return unicodedata.normalize("NFKC", unescaped)


def long(word: str) -> bool:
    """Whether it cannot stand there by chance, as four digits can in a digest."""
    return len(word) > 8 or not word.isascii()


def _orders() -> Seed:
    lines = (line(price=600_000, category="cameras"), line(category="batteries"))
    orders = [
        order(name, one | {"name": PLACES["a product's name"]}, tenant_id="acme-jp", customer_id="CANARY",
              note=PLACES["an order's note"])
        for name, one in zip(CASES, lines, strict=True)
    ]  # fmt: skip
    person = {"name": PLACES["a recipient's name"], "email": PLACES["a recipient's address"]}
    who = recipient("CANARY", tenant_id="acme-jp", **person)
    seed = {"snapshot": "2026-07-30T00:00:00+09:00", "policies": [], "orders": orders, "recipients": [who]}
    return Seed.model_validate_json(json.dumps(seed))


def _ran(cli: Cli, folder: Path, name: str) -> dict[str, Any]:
    lines = [{"line_id": "L1", "quantity": 1}]
    named = {"order_id": name, "customer_id": "CANARY", "request_id": PLACES["a request's id"] + name}
    document = case("normal", **named, lines=lines, message=PLACES["a customer's words"])
    file = folder / " ".join((PLACES["a case's file name"], f"{name}.json"))
    file.write_text(json.dumps(document), encoding="utf-8")
    return dict(cli("run", str(file), "--json").json())


@pytest.fixture(scope="module")
def told(stack: Cli, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Everything that is put out, after every place was filled."""
    folder = tmp_path_factory.mktemp("canary")
    cli = approvers(stack.with_settings(CANARY=PLACES["the environment"]), folder, "suzuki")
    asyncio.run(load(stack.dsn("tools", "tools_owner"), _orders()))
    dear, handed = (_ran(cli, folder, name) for name in CASES)
    assert (dear["state"], handed["state"]) == ("WAITING_APPROVAL", "NEEDS_REVIEW")
    why = ("--reason", PLACES["words of a denial"], "--yes", "--digest", digest_of(dear))
    assert cli("deny", dear["workflow_id"], "--as", "suzuki", *why).code == 0
    assert cli("run", dear["workflow_id"], "--json").json()["reason"] == "approval_denied"
    body = PLACES["a request without a token"].encode()
    with httpx2.Client(trust_env=False, verify=False) as client:
        address = f"http://127.0.0.1:{stack.part('tool_server')['port']}/mcp"
        assert client.post(address, content=body, headers={"Authorization": f"Bearer {body.hex()}"}).status_code == 401
    assert cli("stop", "--as", "ito", "--reason", PLACES["words of a stop"]).code == 0
    name = str(handed["workflow_id"])
    try:
        sheets = {f"handover{form}": cli("handover", name, *form.split()).out for form in ("", " --html", " --json")}
        sheets["list --exceptions"] = cli("list", "--exceptions", "--json").out
    finally:
        for whole in ((), ("--full",)):  # not one at a time, which the other tests' stack would stay with
            assert cli("resume", "--as", "sato", "--reason", PLACES["words of a stop"], *whole).code == 0
    closing = ("review", name, "close", "--as", "sato", "--reason", PLACES["words of a review"])
    assert cli(*closing).code == 0
    assert cli("rollout", "waive", "--as", "sato", "--reason", PLACES["words of a rollout"]).code == 0
    assert cli("audit", "export", str(folder / "record")).code == 0
    yield sheets | {
        "logs": "".join(path.read_text("utf-8", "replace") for path in sorted((stack.home / "logs").iterdir())),
        "export": (folder / "record").read_text("utf-8"),
        "explain": "".join(cli("explain", one["workflow_id"], "--json").out for one in (dear, handed)),
        "diagnose": "".join(cli("diagnose", one["workflow_id"], "--json").out for one in (dear, handed)),
        "reconcile": cli("reconcile", "--json").out,
        "show": cli("show", dear["workflow_id"], "--json").out + cli("show", name).out,
        **{read: cli(*read.split(), "--json").out for read in READ},
    }
    assert cli("approver", "revoke", "suzuki").code == 0


@pytest.mark.parametrize("output", OUTPUTS)
def test_what_was_typed_is_put_out_nowhere_but_where_the_runbook_says_so(told: dict[str, str], output: str) -> None:
    said = plain(told[output])
    assert len(said) > (10 if output == "token list" else 100)  # nobody has issued one here
    found = {place for place, words in PLACES.items() if any(one in said for one in plain(words).split() if long(one))}
    assert found == {place for place, shown in SHOWN if shown == output}


@pytest.mark.usefixtures("told")
def test_it_was_there_to_be_put_out(stack: Cli) -> None:
    held = ""
    for side, tables in HELD.items():
        with stack.owner(side) as owner:
            for table in tables:
                query = sql.SQL("SELECT jsonb_agg(to_jsonb(t)) FROM {} AS t").format(sql.Identifier(*table.split(".")))
                held += str(owner.execute(query).fetchone())
    assert [place for place, words in PLACES.items() if place not in PASSING and words not in held] == []
