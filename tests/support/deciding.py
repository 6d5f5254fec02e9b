"""Cases that wait for a person on a stack of this machine, and approvers with keys of their own there."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.support.cli import COMMAND, ROOT, Cli, case, written

SECRET = "correct horse battery"
WAIT_SECONDS = 20.0
END_OF_INPUT = "\x04"  # what Ctrl-D types


def approvers(cli: Cli, folder: Path, *names: str) -> Cli:
    """The command line of a person's machine: with a directory of keys, and the passphrase in a file."""
    file = folder / "passphrase"
    file.write_text(SECRET + "\n", encoding="utf-8")
    file.chmod(0o600)
    theirs = cli.with_settings(
        KESSAI_APPROVERS=str(folder / "keys"), KESSAI_APPROVER_PASSPHRASE_FILE=str(file)
    )  # fmt: skip
    for name in names:
        said = theirs("approver", "add", name)
        assert said.code == 0, said.err
    return theirs


def high_value(cli: Cli, folder: Path, order_id: str, customer_id: str, line_id: str) -> dict[str, Any]:
    """Run a return of a camera to where a person has to decide; gives its record."""
    lines = [{"line_id": line_id, "quantity": 1}]
    document = case("high-value", order_id=order_id, customer_id=customer_id, lines=lines)
    said = cli("run", written(folder, document), "--json")
    record = dict(said.json())
    assert (record["state"], said.code) == ("WAITING_APPROVAL", 10)
    return record


def digest_of(record: dict[str, Any]) -> str:
    return str(record["approvals"][-1]["action_digest"])


def made(cli: Cli, order_id: str) -> tuple[int, int]:
    """How many returns and notices the tools have made for an order; what it had before came with the demo."""
    with cli.owner("tools") as tools:
        row = tools.execute(
            "SELECT (SELECT count(*) FROM returns.returns WHERE order_id = %(order)s "
            "AND idempotency_key IS NOT NULL), "
            "(SELECT count(*) FROM notices.outbox WHERE order_id = %(order)s)",
            {"order": order_id},
        ).fetchone()
    assert row is not None
    return row[0], row[1]


def typed(cli: Cli, answers: list[tuple[str, str | signal.Signals]], *arguments: str) -> tuple[int, str]:
    """Run it on a terminal and type each answer once its prompt is there; gives the code and what was to be seen.

    A signal is sent and not typed; of bytes that are no text, write the surrogates.
    """
    leader, follower = pty.openpty()
    environment = {name: value for name, value in cli.environment().items() if not name.endswith("PASSPHRASE_FILE")}
    with subprocess.Popen(
        [*COMMAND, *arguments], env=environment, cwd=ROOT, stdin=follower, stdout=follower, stderr=follower,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(follower)
        seen, waiting = "", list(answers)
        until = time.monotonic() + WAIT_SECONDS * 3
        while time.monotonic() < until:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # the last writer has gone
                break
            seen += chunk.decode("utf-8", "replace")
            if waiting and waiting[0][0] in seen:
                answer = waiting.pop(0)[1]
                if isinstance(answer, signal.Signals):
                    process.send_signal(answer)
                else:
                    end = b"" if answer == END_OF_INPUT else b"\n"
                    os.write(leader, answer.encode("utf-8", "surrogateescape") + end)
        process.wait(WAIT_SECONDS)
    os.close(leader)
    return process.returncode, seen


def authorization_with(folder: Path, name: str) -> Path:
    """The packaged authorization set with one approver more, who may decide on anything."""
    document = json.loads((ROOT / "host" / "data" / "authz-v7.json").read_text(encoding="utf-8"))
    more = {"limit": {"amount": 10**9, "currency": "JPY"}, "substitutes": [], "substitutes_after_seconds": 0}
    document["approvers"].append({"name": name, "tenant_id": "acme-jp", **more})
    file = folder / "authz.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
