"""What the claimant is told: derived from the state and the reason alone, per language.

A case that does not exist and one of somebody else read the same, and no document counts as there before code said so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from host.domain.workflow import Language, Seen

_AT_WORK = {
    Language.JA: "ご提出いただいた書類を確認しております。",
    Language.EN: "We are checking the documents that you have sent us.",
}
_TOLD: dict[str, Mapping[Language, str]] = {
    "NEEDS_REVIEW": {
        Language.JA: "ご提出いただいた書類を担当者が確認しております。結果は改めてご連絡いたします。",
        Language.EN: "A member of our staff is looking at your documents. We will write to you again.",
    },
    "REJECTED": {
        Language.JA: "ご指定の事案が見つかりませんでした。番号をご確認ください。",
        Language.EN: "We could not find this case. Please check its number.",
    },
}
_COMPLETE = {
    Language.JA: "必要な書類はすべてそろっています。",
    Language.EN: "All the documents that we need are here.",
}
_MISSING = {
    Language.JA: "まだ届いていない書類があります。",
    Language.EN: "Some of the documents that we need have not arrived.",
}


def message(state: str, reason: str, language: Language, effects: Mapping[str, str], seen: tuple[Seen, ...]) -> str:
    """Give the one sentence for the claimant."""
    del effects, seen
    if state == "COMPLETED":
        return (_MISSING if reason == "missing_required_documents" else _COMPLETE)[language]
    return _TOLD.get(state, _AT_WORK)[language]


def notification(case_id: str, missing: Iterable[str]) -> dict[str, str]:
    """Draft what a claimant is asked to send; nobody sends it but a person."""
    codes = tuple(missing)
    return {
        Language.JA.value: f"事案 {case_id} について、次の書類をお送りください: {'、'.join(codes)}",
        Language.EN.value: f"Please send us these documents for case {case_id}: {', '.join(codes)}",
    }
