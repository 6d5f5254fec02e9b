"""The evaluation's cases, and what the shop's data says of them by the tests' own reading of it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from shared_contracts.evaluation import Category, EvaluationCase
from shared_contracts.evaluation_cases import CaseSet, read_cases
from shared_contracts.returns import Ask, ReturnFacts, RulingOutcome, rule
from tests.support.shop import read_shop, shop_facts
from tool_server.seed import SeedOrder

CASES_OF = Path(__file__).parents[2] / "host" / "data" / "evaluation"
_SEED = read_shop()
ORDERS = {(order.tenant_id, order.order_id): order for order in _SEED.orders}
NOT_THEIRS = {Category.MISSING_ORDER, Category.FOREIGN_ORDER}


def _read(folder: Path) -> tuple[EvaluationCase, ...]:
    read = read_cases(folder)
    assert isinstance(read, CaseSet), read
    return read.cases


CASES = _read(CASES_OF)
BEYOND = _read(CASES_OF / "beyond")  # faults beyond the six
OF_THEIR_OWN = tuple(case for case in CASES if case.category not in NOT_THEIRS)


def of(category: Category) -> tuple[EvaluationCase, ...]:
    return tuple(case for case in CASES if case.category is category)


def asked(case: EvaluationCase) -> datetime:
    return datetime.fromisoformat(case.request["requested_at"])


def order_of(case: EvaluationCase) -> SeedOrder:
    return ORDERS[case.tenant, case.request["order_id"]]


def facts(case: EvaluationCase) -> ReturnFacts:
    found = shop_facts(_SEED, case.tenant, case.request)
    assert found is not None, case.id
    return found


def ruled(case: EvaluationCase) -> tuple[RulingOutcome, str]:
    found = rule(shop_facts(_SEED, case.tenant, case.request), frozenset(map(Ask, case.request.get("asks", ()))))
    return found.outcome, found.reason


def together(case: EvaluationCase) -> tuple[int, str]:
    """What meets the threshold: this return and the order's other ones."""
    known = facts(case)
    return known.refund.amount + known.other_returns.amount, known.refund.currency
