"""Good tokens of another call: another tool, order, customer, tenant, task, attempt, use; and tokens that were used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from shared_contracts.digest import digest
from shared_contracts.tools import TOOLS
from tests.security.forgery.attempt import CLAIMS, Answer, Attempt, needs, plain, proven, right, told, with_claims
from tests.security.forgery.forge import CALLS, DROP, LEGACY, ONE, Forge, Wire

_KEYED = [name for name in CALLS if TOOLS[name].idempotency_key]


def returning(forge: Forge, **details: Any) -> Wire:
    """A return of one unit: what a write's right token does."""
    claims = {name: details.pop(name) for name in tuple(details) if name in {"jti", "task_id", "sub"}}
    return forge.call(forge.token(tool="create_return", details=details, **claims), "create_return")


def right_write(kind: str) -> Attempt:
    return right(kind, "the right token of a write", returning)


def _to(name: str, **token: Any) -> Callable[[Forge], Wire]:
    """A call of a tool whose token differs so."""
    return lambda forge: forge.call(forge.token(**{"tool": name, **token}), name)


def _each(kind: str, answer: Answer, names: Any = CALLS, **token: Any) -> list[Attempt]:
    return [Attempt(kind, name, _to(name, **token), answer) for name in names]


def _for_other_tool(name: str) -> str:
    return "get_return" if name == "get_order" else "get_order"


TOOL = [
    plain("the token of another tool"),
    *(
        Attempt(
            "the token of another tool",
            f"{name} with one of {_for_other_tool(name)}",
            _to(name, details={"tool": _for_other_tool(name)}),
            told("token_for_other_tool"),
        )
        for name in CALLS
    ),
    *(
        Attempt(
            "the token of another tool",
            f"create_return with one of {other}",
            _to("create_return", details={"tool": other}),
            told("token_for_other_tool"),
        )
        for other in ("find_return", "cancel_return", "Create_Return", "create_return_", "no_such_tool")
    ),
]
ORDER = [
    plain("the token of another order"),
    right_write("the token of another order"),
    *_each("the token of another order", told("token_for_other_resource"), details={"resource": "A-2"}),
    *(
        Attempt(
            "the token of another order",
            f"{name} of {other}",
            lambda f, name=name, other=other: f.call(f.token(tool=name), name, {**CALLS[name], "order_id": other}),
            told("token_for_other_resource"),
        )
        for name in ("get_order", "create_return")
        for other in ("A-2", "B-1", "T-1", "no-such", "a-1", "A-1x")
    ),
]


def _with_line(line_id: str) -> Callable[[Forge], Wire]:
    """A genuine token for a return of the own order, and for this line in it."""
    given = {**ONE, "lines": [{"line_id": line_id, "quantity": 1}]}
    return lambda f: f.call(f.token(tool="create_return", arguments=given), "create_return", given)


_LINE = "a line of another's order"
LINE = [
    right(_LINE, "a line of the own", _with_line("L1")),
    *(
        Attempt(_LINE, f"{whose}, {line_id}", _with_line(line_id), told("not_eligible", "not_returnable"))
        for whose, line_id in (("nobody's", "L404"), ("another customer's", "LB"), ("another tenant's", "LT"))
    ),
]
_OTHER_ARGUMENTS: list[dict[str, Any]] = [
    {**ONE, "reason": "other"},
    {**ONE, "lines": [{"line_id": "L1", "quantity": 2}]},
    {**ONE, "lines": [{"line_id": "L2", "quantity": 1}]},
    {**ONE, "lines": [*ONE["lines"], {"line_id": "L2", "quantity": 1}]},
]
_DIGESTS = [
    digest({}), digest([]), digest(ONE)[::-1], "0" * 64, digest({"order_id": "A-2"}), digest({"order_id": "A-1 "}),
]  # fmt: skip
ARGUMENTS = [
    plain("the token of other arguments"),
    right_write("the token of other arguments"),
    *(
        Attempt(
            "the token of other arguments",
            f"sent {json.dumps(other)[:70]}",
            lambda f, other=other: f.call(f.token(tool="create_return"), "create_return", other),
            told("token_for_other_arguments"),
        )
        for other in _OTHER_ARGUMENTS
    ),
    *(
        Attempt(
            "the token of other arguments",
            f"{name}, {sha256[:8]}",
            _to(name, details={"arguments_sha256": sha256}),
            told("token_for_other_arguments"),
        )
        for name in ("get_order", "create_return", "send_return_notice")
        for sha256 in _DIGESTS
    ),
]

TENANT = [
    plain("the token of another tenant"),
    right_write("the token of another tenant"),
    *_each("the token of another tenant", told("not_found"), tenant_id="other"),
    Attempt(
        "the token of another tenant",
        "one of nobody's order, which is answered in the same way",
        lambda f: f.call(f.token(arguments={"order_id": "A-404"}), arguments={"order_id": "A-404"}),
        told("not_found"),
    ),
    *(
        Attempt("the token of another tenant", f"{name}, {tenant!r}", _to(name, tenant_id=tenant), told("not_found"))
        for name in ("get_order", "create_return")
        for tenant in ("ACME", "acme.", "acme-1", "#acme")
    ),
]


def _by_partner(name: str = "get_order", **claims: Any) -> Callable[[Forge], Wire]:
    return lambda f: f.call(f.token(f.keys.partner, tool=name, **claims), name)


_FOREIGN = "a tenant that its issuer does not speak for"
ISSUERS_TENANT = [
    right(_FOREIGN, "one of the partner's two", _by_partner()),
    *(Attempt(_FOREIGN, name, _by_partner(name, tenant_id="other"), proven("tenant")) for name in CALLS),
    *(
        Attempt(_FOREIGN, repr(tenant), _by_partner(tenant_id=tenant), proven("tenant"))
        for tenant in ("every", "ACME", "Acme", "acme.", "acme-beta", "acm", "a", "#acme", "beta2", "acme#beta")
    ),
    *(
        Attempt(
            _FOREIGN, use, lambda f, of=of: f.call(getattr(f, of)(signer=f.keys.partner, tenant_id="other")),
            proven("tenant"),
        )
        for use, of in (("as a probe", "probe"), ("as an outside host", "external"), ("to write", "outside_write"))
    ),
]  # fmt: skip
CUSTOMER = [
    plain("the token of another customer"),
    right_write("the token of another customer"),
    *_each("the token of another customer", told("not_found"), details={"customer": "C-2"}),
    *(
        Attempt(
            "the token of another customer",
            f"{name}, {customer!r}",
            _to(name, details={"customer": customer}),
            told("not_found"),
        )
        for name in ("get_order", "create_return")
        for customer in ("c-1", "C-1.", "C-12", "C", "#C-1")
    ),
]

SCOPES = {name: TOOLS[name].scope.value for name in CALLS}


def _without(scope: str) -> str:
    return " ".join(sorted({other for other in SCOPES.values() if other != scope}))


SCOPE = [
    plain("a scope is missing"),
    right_write("a scope is missing"),
    *(
        Attempt(
            "a scope is missing",
            f"{name} in {era}",
            lambda f, name=name, era=era: f.call(f.token(tool=name, scope=_without(SCOPES[name])), name, era=era),
            needs(SCOPES[name]),
        )
        for name in CALLS
        for era in ("2026-07-28", LEGACY)
    ),
    *(
        Attempt(
            "a scope is missing",
            f"only {scope!r}",
            _to("create_return", scope=scope),
            needs("returns:write"),
        )
        for scope in ("returns:read", "RETURNS:WRITE", "returns:writes", "returns", "*", "returns:*", "admin")
    ),
]
_NOSCOPES = [" ", "orders:read ", " orders:read", "orders:read  returns:read", "a\tb", 'a"b', "é", "a\\b"]
NO_SCOPE = [
    plain("a scope that is none"),
    *with_claims("a scope that is none", proven("scope"), [(repr(scope), {"scope": scope}) for scope in _NOSCOPES]),
]

_DETAILS: list[dict[str, Any]] = [
    {"type": "other"}, {"type": DROP}, {"approved": True}, {"attempt": 0}, {"attempt": -1}, {"attempt": 1001},
    {"attempt": "1"}, {"attempt": True}, {"attempt": 1.0}, {"arguments_sha256": "A" * 64},
    {"arguments_sha256": "a" * 63},
    {"arguments_sha256": ""}, {"idempotency_key": ""}, {"idempotency_key": "a b"}, {"idempotency_key": "a" * 121},
    {"customer": ""}, {"customer": DROP}, {"customer": None}, {"resource": "R-1\u0000"}, {"resource": ["A-1"]},
    {"tool": ""},
    {"tool": ["get_order"]}, {"requested_at": 1}, {"requested_at": "2026-07-30T12:00:00"}, {"purpose": "admin"},
    {"customer": ["C-1"]}, {"customer": {"$ne": ""}},
]  # fmt: skip
DETAILS = [
    plain("malformed details"),
    right("malformed details", "no key, which a read needs not", _to("get_order", details={"idempotency_key": DROP})),
    *with_claims("malformed details", CLAIMS, [(repr(one), {"details": one}) for one in _DETAILS]),
    *with_claims(
        "details that bind too little",
        proven("details"),
        [(name, {"details": {name: DROP}}) for name in ("tool", "resource", "arguments_sha256", "attempt")],
    ),
    plain("details that bind too little"),
    *(
        Attempt(
            "details that bind too little", f"no key for {name}", _to(name, details={"idempotency_key": DROP}),
            proven("details"),
        )
        for name in _KEYED
    ),
    *with_claims("details that bind too little", proven("details"), [("none at all", {"authorization_details": []})]),
    Attempt(
        "details that bind too little", "two", lambda f: f.call(f.token(authorization_details=_two(f))), CLAIMS
    ),
]  # fmt: skip


def _two(forge: Forge) -> list[Any]:
    return [*forge.claims()["authorization_details"]] * 2


ATTEMPTS: list[Attempt] = [
    *TOOL, *ORDER, *LINE, *ARGUMENTS, *TENANT, *ISSUERS_TENANT, *CUSTOMER, *SCOPE, *NO_SCOPE, *DETAILS,
]  # fmt: skip
