"""Findings after which nothing new may begin: what each of them stops, in the transaction that finds it."""

from __future__ import annotations

from enum import StrEnum


class Severe(StrEnum):
    """Each is too much the first time."""

    FOREIGN_DATA = "foreign_data_disclosed"
    OUTSIDE_PERMISSION = "update_outside_permission"
    DUPLICATE = "duplicate_return"
    WRONG_NOTICE = "wrong_notice"
    APPROVAL_BYPASSED = "approval_bypassed"
    NOT_COMPENSABLE = "compensation_impossible"
    CALL_LIMIT = "call_limit"  # a case that needs more calls than any should: somebody looks before others do


_UPDATES = ("new_work", "updates")
# How far another's data got, nobody knows who was answered with it once: so no more is read either.
SCOPES: dict[Severe, tuple[str, ...]] = dict.fromkeys(Severe, _UPDATES) | {Severe.FOREIGN_DATA: (*_UPDATES, "reads")}
