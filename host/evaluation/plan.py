"""What is going to be run: the cases, each read as its kind has it, and the conditions that they are run under.

Invariant: whatever is wrong with a case, or is not pinned as an evaluation is, is found before anything is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from host.domain.principals import Act, AuthorizationSet, Principal
from host.engine.accept import CaseError, read_case
from host.evaluation.prepared import Prepared
from host.settings import Settings
from host.workflows.catalogue import CURRENT
from shared_contracts.evaluation import AFTER_A_YES, NO_REQUEST, EvaluationCase, Fault, FaultKind
from shared_contracts.evaluation_cases import CaseSet
from shared_contracts.evaluation_report import Component
from shared_contracts.evaluation_retail import DELIVERED_ON
from shared_contracts.retail import POLICY_VERSION, snapshot_of
from shared_contracts.tools import TOOLS

KIND = "returns"
# The data that an evaluation is of. Under others its numbers would be of something else than those before it.
PINNED: Mapping[str, str] = {
    "order_snapshot": "2026-07-30T00:00:00+09:00", "policy_version": "policy-v12", "authz_version": "authz-v7",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Over:
    """The data that an evaluation is of; `more` is a retail shop's file that is loaded beside the packaged one."""

    order_snapshot: str
    policy_version: str
    authz_version: str
    more: bytes | None = None


PACKAGED = Over(PINNED["order_snapshot"], PINNED["policy_version"], PINNED["authz_version"])


def over_retail(data: bytes) -> Over:
    """Name what a retail shop's file is loaded as; the rights are the packaged ones."""
    return Over(snapshot_of(DELIVERED_ON), POLICY_VERSION, PINNED["authz_version"], data)


class UnfitError(Exception):
    """The evaluation cannot be begun; a line per problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        """Keep the lines."""
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run and how; `dataset` is the digest of the set that the cases are of.

    `removed` are tools that the tool server does not offer.
    """

    cases: tuple[Prepared, ...]
    dataset: str
    concurrency: int
    seed: int
    changed: Component | None
    over: Over = PACKAGED
    removed: frozenset[str] = frozenset()

    def struck(self, *, at_mail: bool) -> dict[str, Fault]:
        """Give what is done on the wire, or at the mail server, by the order that it is done to."""
        found = ((one.case.request["order_id"], one.case.fault) for one in self.cases)
        return {
            str(order): fault
            for order, fault in found
            if fault is not None
            and fault.kind not in NO_REQUEST
            and (fault.kind is FaultKind.NOTICE_FAILURE) is at_mail
        }

    def has(self, kind: FaultKind) -> bool:
        """Tell whether this is done to any case."""
        return any(one.case.fault is not None and one.case.fault.kind is kind for one in self.cases)

    def orders(self) -> frozenset[str]:
        """Name the orders that the cases are about."""
        return frozenset(str(one.case.request["order_id"]) for one in self.cases)

    def approvers(self) -> frozenset[str]:
        """Name those who decide, or try to."""
        decisions = (one.case.decision for one in self.cases)
        return frozenset(by for one in decisions if one is not None for by in (one.by, one.tried_by) if by is not None)

    def deciders(self) -> dict[str, str]:
        """Name who decides, by the order that it is about."""
        decided = ((one.case.request["order_id"], one.case.decision) for one in self.cases)
        return {str(order): one.by for order, one in decided if one is not None and one.by is not None}


def plan(
    settings: Settings, authorization: AuthorizationSet, cases: CaseSet, concurrency: int, seed: int,
    changed: Component | None, over: Over = PACKAGED,
) -> Plan:  # fmt: skip
    """Read every case; raises UnfitError with everything that is wrong."""
    problems = _unpinned(settings, authorization, over)
    prepared = list[Prepared]()
    for case in cases.cases:
        principal = _principal(authorization, case.tenant)
        if principal is None:
            problems.append(f"{case.id}: nobody of {case.tenant} in the authorization set may ask for {KIND}")
            continue
        try:
            _, request = read_case({**case.request, "kind": KIND, "request_id": f"evaluation-{case.id}"}, CURRENT)
        except CaseError as error:
            problems.append(f"{case.id}: {error}")
            continue
        prepared.append(Prepared(case, request, principal))
    problems += _unknown(authorization, [one.case for one in prepared])
    if problems:
        raise UnfitError(tuple(problems))
    return Plan(tuple(prepared), cases.sha256, concurrency, seed, changed, over)


def _unpinned(settings: Settings, authorization: AuthorizationSet, over: Over) -> list[str]:
    """Compare what is set with what is evaluated; a file that is brought along names its own data."""
    of_file = over.more is not None
    held = {
        "order_snapshot": PINNED["order_snapshot"] if of_file else settings.order_snapshot,
        "policy_version": PINNED["policy_version"] if of_file else settings.policy_version,
        "authz_version": authorization.version,
    }
    return [
        f"{name} is {held[name]}, and an evaluation is of {due}: unset what sets it"
        for name, due in PINNED.items()
        if held[name] != due
    ]


def _unknown(authorization: AuthorizationSet, cases: list[EvaluationCase]) -> list[str]:
    """Find deciders who are no approvers, and orders at which it would be open whose fault it is."""
    names = {approver.name for approver in authorization.approvers}
    problems = [
        f"{case.id}: {by} is no approver of the authorization set"
        for case in cases
        if case.decision is not None
        for by in (case.decision.by, case.decision.tried_by)
        if by is not None and by not in names
    ]
    could = {one.name for one in authorization.operators if Act.REVIEW in one.may and one.covers("*")}
    problems += [
        f"{case.id}: {case.undone_by} is no operator who decides reviews of every tenant"
        for case in cases
        if case.undone_by is not None and case.undone_by not in could
    ]
    problems += _spent(cases)
    faulty = {case.request["order_id"]: case.id for case in cases if case.fault is not None}
    problems += [
        f"{case.id}: its order is that of {faulty[case.request['order_id']]}, to which a fault is done"
        for case in cases
        if faulty.get(case.request["order_id"], case.id) != case.id
    ]
    tools = CURRENT[KIND].tools.values()
    called = {name for names in tools for name in names} | {tool.reconcile_with for tool in TOOLS.values()}
    return problems + [
        f"{case.id}: no {case.fault.tool} is called in a case of {KIND}"
        for case in cases
        if case.fault is not None and case.fault.tool is not None and case.fault.tool not in called
    ]


def _spent(cases: list[EvaluationCase]) -> list[str]:
    """Find who would have to decide after their key counts no more, which is so until the run ends."""
    revoked = {
        case.decision.by: case.id
        for case in cases
        if case.decision is not None and case.fault is not None and case.fault.kind is FaultKind.APPROVER_REVOKED
    }
    return [
        f"{case.id}: {case.decision.by} decides it when their key is revoked already, in {revoked[case.decision.by]}"
        for case in cases
        if case.decision is not None
        and case.fault is not None
        and case.fault.kind in AFTER_A_YES - {FaultKind.ORDER_CHANGED}
        and revoked.get(case.decision.by, case.id) != case.id
    ]


def _principal(authorization: AuthorizationSet, tenant: str) -> Principal | None:
    """Find who asks for a tenant: the first in the set who holds every right that a case of the kind can need."""
    needed = {name for names in CURRENT[KIND].tools.values() for name in names}
    scopes = {TOOLS[name].scope for name in needed}
    fit = (one for one in authorization.principals if one.tenant_id == tenant)
    return next((one for one in fit if needed <= one.tools and scopes <= one.scopes), None)
