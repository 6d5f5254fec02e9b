"""Both sides of one workflow that returned something and told of it, to be spoiled row by row."""

from __future__ import annotations

from host.domain.books import Attempted, Intended, Issued, Ledger, Logged, Made, Served, Stands

TENANT, CASE = "acme", "0198c2f4-0000-7000-8000-000000000001"
RETURN, NOTICE = "create_return", "send_return_notice"


def key(tool: str, case: str = CASE) -> str:
    return f"{case}:{tool}"


def logged(
    jti: str, tool: str, outcome: str = "ok", *, case: str = CASE, use: str = "call", keyed: bool = True
) -> Logged:
    writes = keyed and tool in {RETURN, NOTICE}
    return Logged(jti, use, case, TENANT, tool, key(tool, case) if writes else None, outcome)


def attempted(jti: str, tool: str, outcome: str | None = "success", case: str = CASE) -> Attempted:
    return Attempted(jti, case, tool, outcome)


def intended(tool: str, number: str | None, outcome: str | None = "succeeded", *, under: str | None = None) -> Intended:
    return Intended(CASE, TENANT, tool, key(tool) if under is None else under, outcome, number)


def made(tool: str, number: str, *, under: str | None, stands: Stands = Stands.DONE, about: str = "A-1: L1 1") -> Made:
    return Made(tool, TENANT, under, number, stands, about)


def issued(jti: str, task: str = "T-1", *, tool: str | None = None, under: str | None = None) -> Issued:
    return Issued(jti, task, TENANT, tool, under)


LOG = (
    logged("j1", "get_order"),
    logged("j2", RETURN),
    logged("j3", "get_return"),
    logged("j4", NOTICE, "begun"),
    logged("j4", NOTICE),
)
MADE = (made(RETURN, "R-1", under=key(RETURN)), made(NOTICE, "<m-1>", under=key(NOTICE), about="R-1"))
ATTEMPTS = (
    attempted("j1", "get_order"),
    attempted("j2", RETURN),
    attempted("j3", "get_return"),
    attempted("j4", NOTICE),
)
EFFECTS = (intended(RETURN, "R-1"), intended(NOTICE, "<m-1>"))


def served(*, log: tuple[Logged, ...] = LOG, made: tuple[Made, ...] = MADE) -> Served:
    return Served(log, made)


def ledger(
    *,
    attempts: tuple[Attempted, ...] = ATTEMPTS,
    effects: tuple[Intended, ...] = EFFECTS,
    issued: tuple[Issued, ...] = (),
) -> Ledger:
    return Ledger(attempts, effects, issued)
