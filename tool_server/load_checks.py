"""What speaks against a file because of what is loaded already. Pure, but for reading what the database says.

Invariant: whoever loads is told the place and what to do, and never a constraint's name. What two loads at once can
still break is told by the database's own refusal, in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import psycopg

from shared_contracts.base import dump
from shared_contracts.digest import digest
from tool_server.seed import SeedOrder, SeedPolicy
from tool_server.seed_amounts import paid_by_line
from tool_server.seed_checks import Problem
from tool_server.store.seed import KnownOrder, KnownPolicy

_BEGINS = "begins at the instant at which {other} begins; two versions cannot, give it another effective_from"
_TAKEN = "is the number of a return that is loaded already; give each return a number of its own"
# By constraint: what a load meets only where another one, or a return, came in between.
_WORDS = {
    "versions_effective_from_key": _BEGINS.format(other="another version"),
    "versions_of_tenant_key": _BEGINS.format(other="another version of the tenant"),
    "versions_pkey": "was loaded a moment ago by somebody else; load the file again",
    "returns_pkey": _TAKEN,
    "returned_within_delivered": "more was returned than would be delivered; raise delivered_quantity",
    "refunded_within_paid": "more was paid back than would be paid for it; raise its price, or lower the discount",
    "refunded_within_captured": "more was paid back than would be captured; raise captured, or lower refunded_outside",
    "shipping_refunded_once": "more shipping was paid back than would be asked; raise shipping_fee",
    "recipients_name_check": "the name holds a line break or another control character; remove it",
    "recipients_email_check": "the address holds a space or a control character; remove it",
}
_ELSE = "holds a value that the database does not take; compare it with tool_server/demo/shop.json"
_NAMING = 2  # columns that name a row; those after them may be personal


def against_policies(policies: Sequence[SeedPolicy], known: Mapping[str, KnownPolicy]) -> Iterator[Problem]:
    """Give the versions that were loaded with other rules, and those that begin when a loaded one does."""
    begun = {(policy.tenant_id, policy.effective_from): version for version, policy in known.items()}
    for at, policy in enumerate(policies):
        loaded, begins = known.get(policy.version), (policy.tenant_id, policy.effective_from)
        if loaded is None and begins in begun:
            what = _BEGINS.format(other=f"{begun[begins]}, which is loaded already,")
            yield Problem(f"policies[{at}].effective_from", f"{policy.version} {what}")
        if loaded is not None and loaded.content_sha256 != content_of_policy(policy):
            what = f"{policy.version} was loaded with other rules; a change of rules is a new version"
            yield Problem(f"policies[{at}].version", what)


def content_of_policy(policy: SeedPolicy) -> str:
    """Digest a version as it is written: one that names no tenant has the digest of before there were any."""
    row = dump(policy)
    if policy.tenant_id is None:
        del row["tenant_id"]
    return digest(row)


def against_order(order: SeedOrder, known: KnownOrder | None) -> Iterator[Problem]:
    """Give what speaks against loading an order over the one that is there."""
    if known is None:
        return
    path = _order(order)
    if order.version < known.version:
        yield Problem(path, f"version {known.version} is loaded already; this file's {order.version} is older")
    elif order.version == known.version and digest(dump(order)) != known.content_sha256:
        yield Problem(path, f"version {order.version} was loaded with other content; raise its version")
    if (order.customer_id, order.currency) != (known.customer_id, known.currency):
        yield Problem(path, "an order keeps its customer and its currency; give another order another number")
    if [line.line_id for line in order.lines][: len(known.line_ids)] != known.line_ids:
        yield Problem(path, "lines that were loaded keep their place; add new ones at the end")
    elif order.version > known.version:
        yield from _against_counted(order, known)
    if not {made.return_id for made in order.returns} <= set(known.return_ids):
        yield Problem(path, "returns come with an order's first load only; later ones are made by the tool server")


def against_returns(orders: Iterable[SeedOrder], taken: Mapping[tuple[str, str], str]) -> Iterator[Problem]:
    """Give the returns of new orders whose number another order's return has."""
    for order in orders:
        for made in order.returns:
            if (order.tenant_id, made.return_id) in taken:
                other = taken[order.tenant_id, made.return_id]
                yield Problem(f"{_order(order)}, return {made.return_id}", f"{_TAKEN} (order {other} has it)")


def refusal(error: psycopg.errors.IntegrityError) -> Problem:
    """Say in words what the database would not take, with the names of the row."""
    diag = error.diag
    found = re.search(r"\(([^()]*)\)[^()]*$", diag.message_detail or "")
    names = "" if found is None else "/".join(found[1].split(", ")[:_NAMING])
    place = "the file" if diag.table_name is None else f"a row of {diag.schema_name}.{diag.table_name}"
    return Problem(f"{place} ({names})" if names else place, _WORDS.get(diag.constraint_name or "", _ELSE))


def _against_counted(order: SeedOrder, known: KnownOrder) -> Iterator[Problem]:
    """Give where a newer version has less than what was returned of the order since."""
    path, paid = _order(order), paid_by_line(order)
    for line in order.lines:
        returned, refunded = known.counted.get(line.line_id, (0, 0))
        where = f"{path}, line {line.line_id}"
        if returned > line.delivered_quantity:
            what = f"{returned} were returned and only {line.delivered_quantity} would be delivered"
            yield Problem(f"{where}, delivered_quantity", f"{what}; raise it")
        if refunded > paid[line.line_id]:
            what = f"{refunded} were paid back and only {paid[line.line_id]} would be paid for the line"
            yield Problem(where, f"{what}; raise its price or quantity, or lower the order's discount")
    if known.refunded + order.refunded_outside > order.captured:
        what = f"{known.refunded} were paid back, which with refunded_outside is above {order.captured}"
        yield Problem(f"{path}, captured", f"{what}; raise it, or lower refunded_outside")
    if known.shipping_refunded > order.shipping_fee:
        what = f"{known.shipping_refunded} of it were paid back; it cannot become {order.shipping_fee}"
        yield Problem(f"{path}, shipping_fee", what)


def _order(order: SeedOrder) -> str:
    return f"order {order.tenant_id}/{order.order_id}"
