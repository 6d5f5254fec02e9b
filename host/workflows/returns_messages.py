"""What the customer of a return is told: derived from the state and verified effects alone, per language.

Nothing here says that something was done unless the database holds it as verified; an order that does not exist
and one of somebody else read the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from host.domain.workflow import Language, Seen

_PERSON = {
    Language.JA: "ご依頼の内容を担当者が確認しております。結果は改めてご連絡いたします。",
    Language.EN: "A member of our staff is looking at your request. We will write to you again.",
}
_AT_WORK = {
    Language.JA: "返品のご依頼を受け付けました。現在手続き中です。",
    Language.EN: "We have received your return request and are working on it.",
}
_WITH_NUMBER = {
    Language.JA: "返品番号 {return_id} を発行しました。ご案内のメールをお送りするところです。",
    Language.EN: "Your return number is {return_id}. The instructions are about to be sent to you.",
}
_STATES: dict[str, Mapping[Language, str]] = {
    "WAITING_APPROVAL": {
        Language.JA: "ご依頼は承認待ちです。承認されるまで返品は確定しません。",
        Language.EN: "Your request waits for approval. Nothing is settled until it is approved.",
    },
    "EXPIRED": {
        Language.JA: "期限内に承認が得られなかったため、このご依頼は終了しました。もう一度お申し込みください。",
        Language.EN: "Your request ended because it was not approved in time. Please apply again.",
    },
    "COMPLETED": {
        Language.JA: "返品番号 {return_id} を発行し、ご案内のメールを送信しました。",
        Language.EN: "Your return number is {return_id}. We have sent you an e-mail with the instructions.",
    },
    "NEEDS_REVIEW": _PERSON,
    "COMPENSATION_REQUIRED": _PERSON,
}
_REJECTED: dict[str, Mapping[Language, str]] = {
    "order_not_found": {
        Language.JA: "ご指定の注文が見つかりませんでした。注文番号をご確認ください。",
        Language.EN: "We could not find this order. Please check the order number.",
    },
    "not_returnable": {
        Language.JA: "この注文には、返品できる状態の商品がありません。",
        Language.EN: "The items of this order cannot be returned in their present state.",
    },
    "already_returned": {
        Language.JA: "ご依頼の数量は、すでに返品手続きがされています（返品番号: {earlier}）。",
        Language.EN: "The quantity that you asked for has already been returned (return number: {earlier}).",
    },
    "final_sale": {
        Language.JA: "返品不可の条件で販売した商品のため、お受けできません。",
        Language.EN: "This item was sold as final and cannot be returned.",
    },
    "out_of_period": {
        Language.JA: "返品期間を過ぎているため、お受けできません。",
        Language.EN: "The return period for this order has ended.",
    },
    "withdrawn": {
        Language.JA: "返品のご依頼を取り下げました。",
        Language.EN: "Your return request was withdrawn.",
    },
}
_REFUSED = {
    Language.JA: "返品のご依頼をお受けできませんでした。",
    Language.EN: "Your return request could not be accepted.",
}


def message(state: str, reason: str, language: Language, effects: Mapping[str, str], seen: tuple[Seen, ...]) -> str:
    """Give the one sentence for the customer. `effects` holds external ids of verified effects alone."""
    if state == "REJECTED":
        return _REJECTED.get(reason, _REFUSED)[language].format(earlier=", ".join(_earlier_returns(seen)) or "-")
    if state in {"RETURN_CREATED", "RETRY_WAIT"}:
        return (_WITH_NUMBER if "return_id" in effects else _AT_WORK)[language].format_map(effects)
    if state == "COMPLETED" and "return_id" not in effects:
        return _PERSON[language]  # the database allows no such end; if one is met, nothing is claimed
    return _STATES.get(state, _AT_WORK)[language].format_map(effects)


def _earlier_returns(seen: tuple[Seen, ...]) -> tuple[str, ...]:
    """Name the returns that hold the units: facts that were read for this customer's own order."""
    answers = (one.result for one in seen if one.tool == "check_return_policy" and one.result is not None)
    return tuple(number for answer in answers for number in answer["facts"]["earlier_returns"])
