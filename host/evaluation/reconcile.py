"""Hold the ledger, the tool server's log and its business tables against each other, row by row and by id.

    ledger                    log                     business tables
    attempt ──── jti ──────── call
    effect ───── key ──────── call of a write ─ key ─ return, cancellation, notice
    issued token ─ jti ────── call of an outside host

Invariant: pure; whatever is said to differ has an id that stands in one of the databases. What is under way, on either
side, is neither untracked nor missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from host.domain.books import Attempted, Intended, Issued, Ledger, Logged, Made, Served, Stands
from shared_contracts.errors import ERRORS, Category
from shared_contracts.evaluation_report import Compared

MAKING = frozenset({"create_return", "cancel_return", "send_return_notice", "send_correction_notice"})
# Written beside the row of the same call: it began, or its handler failed after all was written.
_BESIDE = frozenset({"begun", "internal_error", "bad_output", "in_progress"})
# Who was answered so was answered by a statement that wrote its row first. Other refusals may come from in front of the
# log, or while it is away, and prove nothing.
_PROVEN = frozenset(
    {"approval_required", "approval_refused", "token_revoked", "tool_disabled", "token_used", "delivery_unknown"}
    | {row.code for row in ERRORS.values() if row.category is Category.BUSINESS}
)
_CLOSED = frozenset({"rejected", "absent"})


class Kind(StrEnum):
    """On which side something is too much, or not there."""

    UNTRACKED = "untracked"
    MISSING = "missing"
    DUPLICATE = "duplicate"


class Why(StrEnum):
    """What is wrong with the row of that id."""

    NO_ATTEMPT = "no_attempt"
    OTHER_CALL = "other_call"
    SECOND_USE = "second_use"
    NO_EFFECT = "no_effect"
    NO_KEY = "no_key"
    GIVEN_UP = "given_up"
    NOT_LOGGED = "not_logged"
    NOT_MADE = "not_made"
    OTHER_NUMBER = "other_number"
    NOT_DONE = "not_done"
    MADE_TWICE = "made_twice"


MEANINGS: dict[Why, str] = {
    Why.NO_ATTEMPT: "the tool server had a call whose token is in no ledger",
    Why.OTHER_CALL: "the token is of another tool or another case than the call",
    Why.SECOND_USE: "the token came more often than it was sent",
    Why.NO_EFFECT: "it stands there under a key that is in no ledger",
    Why.NO_KEY: "it stands there without a key, and did not come with the loaded data",
    Why.GIVEN_UP: "it stands there, and the ledger says that nothing was made",
    Why.NOT_LOGGED: "the ledger has an answer that the tool server never gave",
    Why.NOT_MADE: "it was said to be made, and does not stand there",
    Why.OTHER_NUMBER: "what stands there has another number than the ledger says",
    Why.NOT_DONE: "the ledger says that it was done, and the tool server that it was not",
    Why.MADE_TWICE: "one intention made it more than once",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`case`: whose it is or claims to be, a workflow or an outside host's task; `key`: the business intention's."""

    kind: Kind
    id: str
    tool: str
    why: Why
    case: str | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found. `under_way` counts requests without an answer and effects that nobody knows the outcome of."""

    compared: int
    external: int
    under_way: int
    findings: tuple[Finding, ...]

    def of(self, kind: Kind) -> tuple[str, ...]:
        """Give the ids of one kind, each once."""
        return tuple(dict.fromkeys(finding.id for finding in self.findings if finding.kind is kind))

    def as_compared(self) -> Compared:
        """Give what a report of an evaluation holds of it."""
        return Compared(
            compared=self.compared,
            external=self.external,
            untracked=self.of(Kind.UNTRACKED),
            missing=self.of(Kind.MISSING),
            duplicate=self.of(Kind.DUPLICATE),
        )


def compare(served: Served, ledger: Ledger) -> Comparison:
    """Compare. `served` has to be no newer than `ledger`: a request is in the ledger before it leaves."""
    calls = _Calls(ledger)
    findings = [*calls.untracked(served.log), *calls.missing(), *_effects(served, ledger)]
    rows = len(served.log) + len(served.made) + len(ledger.attempts) + len(ledger.effects)
    under_way = sum(row.outcome is None for row in ledger.attempts) + sum(row.outcome is None for row in ledger.effects)
    return Comparison(rows, calls.external, under_way, tuple(dict.fromkeys(findings)))


def of_one(rows: Iterable[Made], case: str, keys: Iterable[str | None]) -> tuple[Made, ...]:
    """Give what stands there of one case, by its keys, and whatever else is of the same thing."""
    known, every = frozenset(keys) - {None}, tuple(rows)
    own = [row for row in every if row.idempotency_key in known or str(row.idempotency_key).startswith(f"{case}:")]
    things = {(row.tenant_id, row.tool, row.about) for row in own}
    return tuple(row for row in every if (row.tenant_id, row.tool, row.about) in things)


def looked_at_again(served: Served, again: Served, tokens: Iterable[str], keys: Iterable[str]) -> Served:
    """Give the tool server's side with the rows of some tokens and keys as they were read a second time."""
    of_tokens, of_keys = frozenset(tokens), frozenset(keys)
    return Served(
        log=(*(row for row in served.log if row.jti not in of_tokens), *again.log),
        made=(*(row for row in served.made if row.idempotency_key not in of_keys), *again.made),
    )


class _Calls:
    """The log against the attempts, by the id of each call's token."""

    def __init__(self, ledger: Ledger) -> None:
        self._attempts = {attempt.jti: attempt for attempt in ledger.attempts}
        self._issued = {task.jti: task for task in ledger.issued}
        self._answers: dict[str, list[str]] = defaultdict(list)
        self.external = 0

    def untracked(self, log: Iterable[Logged]) -> Iterator[Finding]:
        for row in log:
            why = self._judge(row)
            if why is not None:
                yield Finding(Kind.UNTRACKED, row.jti, row.tool, why, row.task_id, row.idempotency_key)

    def _judge(self, row: Logged) -> Why | None:
        attempt = self._attempts.get(row.jti)
        if attempt is None:
            task = self._issued.get(row.jti)
            if task is None:
                return Why.NO_ATTEMPT
            self.external += 1
            return None if _is_of(task, row) else Why.OTHER_CALL
        if (attempt.tool, attempt.workflow_id, "call") != (row.tool, row.task_id, row.use):
            return Why.OTHER_CALL
        answers = self._answers[row.jti]
        answers.append(row.outcome)
        counted = [outcome for outcome in answers if outcome not in _BESIDE]
        return Why.SECOND_USE if len(counted) > 1 and row.outcome not in _BESIDE else None

    def missing(self) -> Iterator[Finding]:
        """After the whole log was looked at."""
        for attempt in self._attempts.values():
            if not self._bears(attempt):
                yield Finding(Kind.MISSING, attempt.jti, attempt.tool, Why.NOT_LOGGED, attempt.workflow_id, None)

    def _bears(self, attempt: Attempted) -> bool:
        answers = self._answers.get(attempt.jti, [])
        if attempt.outcome == "success":
            return "ok" in answers
        return attempt.outcome not in _PROVEN or answers != []


def _is_of(task: Issued, row: Logged) -> bool:
    return (task.task_id, task.tenant_id) == (row.task_id, row.tenant_id)


def _effects(served: Served, ledger: Ledger) -> Iterator[Finding]:
    """The effects against what stands there, by key, and both against the calls that made them."""
    made = {
        (row.tenant_id, row.idempotency_key, row.tool): row for row in served.made if row.idempotency_key is not None
    }
    intended: dict[tuple[str, str | None, str], list[Intended]] = defaultdict(list)
    for effect in ledger.effects:
        intended[effect.tenant_id, effect.idempotency_key, effect.name].append(effect)
    writes = (task for task in ledger.issued if task.idempotency_key is not None)
    outside = frozenset((task.tenant_id, task.idempotency_key, task.tool) for task in writes)
    yield from _not_standing(made, ledger.effects)
    yield from _lost(made, served.log)
    yield from _standing(served.made, intended, outside)


def _not_standing(made: dict[tuple[str, str, str], Made], effects: Iterable[Intended]) -> Iterator[Finding]:
    for effect in effects:
        if effect.outcome != "succeeded":
            continue
        row = made.get((effect.tenant_id, effect.idempotency_key, effect.name))
        if row is None:
            why = Why.NOT_MADE
        elif row.id != effect.external_id:
            why = Why.OTHER_NUMBER
        elif row.stands is not Stands.DONE:
            why = Why.NOT_DONE
        else:
            continue
        key = effect.idempotency_key
        yield Finding(Kind.MISSING, key, effect.name, why, effect.workflow_id, key)


def _lost(made: dict[tuple[str, str, str], Made], log: Iterable[Logged]) -> Iterator[Finding]:
    """What the tool server says that it made, and has not."""
    for row in log:
        key = row.idempotency_key
        if row.tool not in MAKING or row.outcome != "ok" or key is None:
            continue
        if (row.tenant_id, key, row.tool) not in made:
            yield Finding(Kind.MISSING, key, row.tool, Why.NOT_MADE, row.task_id, key)


def _standing(
    rows: Iterable[Made],
    intended: dict[tuple[str, str | None, str], list[Intended]],
    outside: frozenset[tuple[str, str | None, str | None]],
) -> Iterator[Finding]:
    """Each row that stands there has one intention, and each intention of a case made one."""
    of_case: dict[tuple[str, str], list[Made]] = defaultdict(list)
    things: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    strange = list[Made]()
    for row in rows:
        place = (row.tenant_id, row.idempotency_key, row.tool)
        effects = intended.get(place, [])
        if effects == [] and place not in outside:
            strange.append(row)
            continue
        if row.stands is not Stands.NOTHING:
            things[row.tenant_id, row.tool, row.about] |= {effect.workflow_id for effect in effects}
        if effects and row.stands is not Stands.NOTHING:
            of_case[effects[0].workflow_id, row.tool].append(row)
            if all(effect.outcome in _CLOSED for effect in effects):
                yield _of(row, Kind.UNTRACKED, Why.GIVEN_UP, effects[0].workflow_id)
    for (case, tool), several in of_case.items():
        known = {e.external_id for row in several for e in intended[row.tenant_id, row.idempotency_key, tool]}
        surplus = [row for row in several if row.id not in known] if len(known - {None}) == 1 else several[1:]
        yield from (_of(row, Kind.DUPLICATE, Why.MADE_TWICE, case) for row in surplus if len(several) > 1)
    for row in strange:
        yield _unexplained(row, things, of_case)


def _unexplained(
    row: Made, things: dict[tuple[str, str, str], set[str]], of_case: dict[tuple[str, str], list[Made]]
) -> Finding:
    """A second one of the same thing, or of the case that its key names, was made twice; any other has no origin."""
    case = None if row.idempotency_key is None else row.idempotency_key.partition(":")[0]
    owners = things.get((row.tenant_id, row.tool, row.about))
    of_its_key = case is not None and (case, row.tool) in of_case
    if owners is not None and not of_its_key and len(owners) == 1:
        (case,) = owners
    if owners is not None or of_its_key:
        return _of(row, Kind.DUPLICATE, Why.MADE_TWICE, case)
    return _of(row, Kind.UNTRACKED, Why.NO_KEY if row.idempotency_key is None else Why.NO_EFFECT, case)


def _of(row: Made, kind: Kind, why: Why, case: str | None) -> Finding:
    return Finding(kind, row.id, row.tool, why, case, row.idempotency_key)
