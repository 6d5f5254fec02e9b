"""What an attempt is made of: the good tokens of one moment, and requests byte for byte.

Invariant: the same forge makes the same bytes for the same wish, so that two attempts that send the same are seen to.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from jwt.algorithms import ECAlgorithm

from shared_contracts.approval import LIFETIME, Action, ApprovalEvent
from shared_contracts.digest import digest
from tests.support.server import LEGACY, MODERN, request
from tests.support.tokens import DROP, Issuer, b64, changed
from tests.support.tool_approvals import Person
from tests.support.tool_orders import ASKED_AT

__all__ = ["CALLS", "DROP", "DUE", "LEGACY", "MODERN", "ONE", "Forge", "Keys", "Wire"]

ONE: dict[str, Any] = {"order_id": "A-1", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}
DUE: dict[str, Any] = {**ONE, "order_id": "A-9"}  # dear enough to need a person's yes
_OF_A_RETURN = {"order_id": "A-1", "return_id": "RT-1"}
CALLS: dict[str, dict[str, Any]] = {
    "get_order": {"order_id": "A-1"},
    "check_return_policy": ONE,
    "create_return": ONE,
    "get_return": _OF_A_RETURN,
    "find_return": {"order_id": "A-1"},
    "cancel_return": _OF_A_RETURN,
    "get_return_links": _OF_A_RETURN,
    "send_return_notice": _OF_A_RETURN,
    "find_notice": {"order_id": "A-1"},
    "send_correction_notice": {**_OF_A_RETURN, "corrects": "<1@example.com>"},
}
VERSION = 9  # of the workflow that asks


@dataclass(frozen=True)
class Wire:
    """One request; nothing of `secrets` may be seen anywhere but in it. `cut`: nothing follows, whatever is due."""

    line: bytes
    headers: tuple[bytes, ...]
    body: bytes
    secrets: tuple[str, ...]
    framing: tuple[bytes, ...] | None = None  # instead of the body's length
    cut: bool = False

    @property
    def written(self) -> bytes:
        framing = (b"Content-Length: %d" % len(self.body),) if self.framing is None else self.framing
        return b"\r\n".join([self.line, *self.headers, *framing, b"", self.body])


@dataclass(frozen=True)
class Keys:
    """Whose signatures there are. `host`, `second` and `partner` are trusted; `revoked` is published and revoked."""

    host: Issuer
    second: Issuer
    revoked: Issuer
    partner: Issuer
    stranger: Issuer
    curve: EllipticCurvePrivateKey  # the partner's other key, ES256, kid `curve`
    tanaka: Person
    suzuki: Person
    gone: Person  # an approver whose key was revoked
    action: Action  # what DUE would do


@dataclass(frozen=True)
class Forge:
    """One moment's. `listener` is an address that nobody may ask."""

    keys: Keys
    port: int
    listener: str
    moment: int = field(default_factory=lambda: int(time.time()))
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def instant(self) -> datetime:
        return datetime.fromtimestamp(self.moment, UTC)

    def token(
        self,
        signer: Issuer | None = None,
        *,
        tool: str = "get_order",
        arguments: Any = None,
        details: dict[str, Any] | None = None,
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A good token for this call, with this changed."""
        who = self.keys.host if signer is None else signer
        return who.sign(self.header(who, header), self.claims(who, tool, arguments, details, **claims))

    def header(self, signer: Issuer | None = None, header: dict[str, Any] | None = None) -> dict[str, Any]:
        who = self.keys.host if signer is None else signer
        return who.header(**({} if header is None else header))

    def claims(
        self,
        signer: Issuer | None = None,
        tool: str = "get_order",
        arguments: Any = None,
        details: dict[str, Any] | None = None,
        **claims: Any,
    ) -> dict[str, Any]:
        given = CALLS.get(tool, CALLS["get_order"]) if arguments is None else arguments
        bound = {
            "tool": tool, "resource": given["order_id"], "arguments_sha256": digest(given),
            "idempotency_key": f"acme:task-1:{self.mark}", "requested_at": ASKED_AT.isoformat(),
        }  # fmt: skip
        plain = {"tenant_id": "acme", "jti": self.mark, **self.lives(60)}
        who = self.keys.host if signer is None else signer
        return who.claims(**{**plain, **claims}, details={**bound, **({} if details is None else details)})

    def lives(self, seconds: int, since: int = 0) -> dict[str, int]:
        """A life that begins `since` from now and lasts so long."""
        return {"iat": self.moment + since, "nbf": self.moment + since, "exp": self.moment + since + seconds}

    def written(self, text: str) -> str:
        """A token whose payload is this text."""
        return self.keys.host.sign(self.header(), text.encode())

    def probe(self, **claims: Any) -> str:
        bare = {"use": "probe", "scope": "", "task_id": "readiness", "authorization_details": []}
        return self.token(**{**self.lives(30), **bare, **claims})

    def external(self, *, details: dict[str, Any] | None = None, **claims: Any) -> str:
        """An outside host's, which reads for one customer."""
        names = ("tool", "resource", "arguments_sha256", "idempotency_key", "attempt")
        bare: dict[str, Any] = dict.fromkeys(names, DROP)
        wanted = {"use": "external", "scope": "orders:read returns:read", **claims}
        return self.token(**wanted, details={**bare, **({} if details is None else details)})

    def outside_write(self, *, details: dict[str, Any] | None = None, **claims: Any) -> str:
        """An outside host's for one return of one order."""
        bound = {"tool": "create_return", "resource": "A-1", "idempotency_key": f"outside:{self.mark}"}
        changes = {} if details is None else details
        return self.external(**{"scope": "returns:write", **claims}, details={**bound, **changes})

    def on_the_curve(self, **header: Any) -> str:
        """Signed by the partner's ES256 key."""
        partner = self.keys.partner
        parts = (self.header(partner, {"kid": "curve", "alg": "ES256", **header}), self.claims(partner))
        signed = ".".join(b64(json.dumps(part).encode()) for part in parts)
        return f"{signed}.{b64(ECAlgorithm(ECAlgorithm.SHA256).sign(signed.encode(), self.keys.curve))}"

    def event(self, person: Person | None = None, **differs: Any) -> ApprovalEvent:
        """A person's yes to DUE, given a minute ago."""
        who = self.keys.tanaka if person is None else person
        asked, decided = self.instant - timedelta(minutes=6), self.instant - timedelta(minutes=1)
        plain = {
            "event_id": f"event-{self.mark}", "workflow_id": "task-1", "subject": "clerk-1", "version": VERSION,
            "requested_at": asked, "decided_at": decided, "expires_at": asked + LIFETIME,
        }  # fmt: skip
        return who.event(self.keys.action, **{**plain, **differs})

    def approved(self, approval: Any, **details: Any) -> Wire:
        """The return that DUE asks for, with this for an approval."""
        claims = {name: details.pop(name) for name in ("task_id", "sub", "tenant_id", "jti") if name in details}
        carried = {"approval": approval, "approved_version": VERSION, **details}
        token = self.token(tool="create_return", arguments=DUE, details=carried, **claims)
        secrets = tuple(part for part in str(approval).split(".") if len(part) > 20)
        return self.call(token, "create_return", DUE, secrets=secrets)

    def call(  # noqa: PLR0913 - each is one way in which a request differs from the plain one
        self,
        token: str | None,
        name: str = "get_order",
        arguments: Any = None,
        *,
        authorization: Iterable[bytes] | None = None,
        body: Callable[[str], bytes | str] | None = None,
        headers: dict[str, str] | None = None,
        more: tuple[bytes, ...] = (),
        line: bytes = b"POST /mcp HTTP/1.1",
        era: str = MODERN,
        secrets: tuple[str, ...] = (),
        framing: tuple[bytes, ...] | None = None,
    ) -> Wire:
        """A call. In `authorization` and `line` an @ is the token; `body` gives another one than the good one."""
        given = CALLS.get(name, CALLS["get_order"]) if arguments is None else arguments
        text, plain = request("tools/call", {"name": name, "arguments": given}, era=era, headers=headers)
        shown = b"" if token is None else token.encode("utf-8", "surrogatepass")
        values = ([b"Bearer @"] if token is not None else []) if authorization is None else authorization
        sent = text if body is None else body(text)
        return Wire(
            line=line.replace(b"@", shown),
            headers=(
                b"Host: 127.0.0.1:%d" % self.port,
                b"Connection: close",
                *(f"{key}: {value}".encode() for key, value in plain.items() if value is not DROP),
                *(b"Authorization: " + value.replace(b"@", shown) for value in values),
                *(one.replace(b"@", shown) for one in more),
            ),
            body=sent.encode() if isinstance(sent, str) else sent,
            framing=framing,
            secrets=((() if token is None else tuple(token.split("."))) + secrets),
        )

    def ask(self, token: str, method: str, era: str) -> Wire:
        """What a token is needed for beside calls."""
        hello = {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "forge", "version": "1"}}
        text, plain = request(method, hello if method == "initialize" else None, era=era, token=token)
        if method.startswith("notifications/"):
            text = json.dumps({name: value for name, value in json.loads(text).items() if name != "id"})
        lines = {"Host": f"127.0.0.1:{self.port}", "Connection": "close", **plain}
        headers = tuple(f"{name}: {value}".encode() for name, value in lines.items())
        return Wire(b"POST /mcp HTTP/1.1", headers, text.encode(), tuple(token.split(".")))

    def changed_header(self, token: str, changes: dict[str, Any]) -> str:
        """The same payload and signature under another header."""
        header = changed(self.header(), changes)
        return ".".join([b64(json.dumps(header).encode()), *token.split(".")[1:]])
