"""The invented customers. Their addresses end in `.example`, which nobody can ever own."""

from __future__ import annotations

from tool_server.seed import SeedRecipient

CUSTOMERS = {"acme-jp": 60, "hoshi-jp": 20}  # both tenants number theirs from C-2001: a number alone is nobody
_MAIL = {"acme-jp": "mail.example", "hoshi-jp": "post.example"}
_ENGLISH_EVERY = 5

_SURNAMES = (
    ("青葉", "aoba"), ("桐原", "kirihara"), ("白瀬", "shirase"), ("月野", "tsukino"), ("鳴海", "narumi"),
    ("葉山", "hayama"), ("氷川", "hikawa"), ("美園", "misono"), ("森下", "morishita"), ("雪村", "yukimura"),
    ("若菜", "wakana"), ("和泉", "izumi"),
)  # fmt: skip
_GIVEN = (
    ("葵", "aoi"), ("海斗", "kaito"), ("さくら", "sakura"), ("蓮", "ren"), ("美緒", "mio"), ("湊", "minato"),
    ("結衣", "yui"), ("大和", "yamato"), ("凛", "rin"), ("悠真", "yuma"), ("千尋", "chihiro"), ("ハナ", "hana"),
)  # fmt: skip
_ENGLISH_SURNAMES = ("Ashdown", "Birchley", "Cresswick", "Dunmarsh", "Elderfen", "Foxgrove", "Greyholt")
_ENGLISH_GIVEN = ("Ada", "Basil", "Cleo", "Dorian", "Effie", "Felix", "Greta", "Hugo")


def customer(index: int) -> str:
    """Name the customer with this index, from 0."""
    return f"C-{2001 + index}"


def _japanese(index: int) -> tuple[str, str]:
    rounds, surname = divmod(index, len(_SURNAMES))
    written, spoken = _SURNAMES[surname]
    given, spoken_given = _GIVEN[(surname * 5 + rounds) % len(_GIVEN)]
    return f"{written} {given}", f"{spoken_given}.{spoken}"


def _english(index: int) -> tuple[str, str]:
    nth = index // _ENGLISH_EVERY
    given, surname = _ENGLISH_GIVEN[nth % len(_ENGLISH_GIVEN)], _ENGLISH_SURNAMES[nth % len(_ENGLISH_SURNAMES)]
    return f"{given} {surname}", f"{given}.{surname}".lower()


def _recipient(tenant: str, index: int) -> SeedRecipient:
    english = index % _ENGLISH_EVERY == _ENGLISH_EVERY - 1
    name, mailbox = _english(index) if english else _japanese(index)
    return SeedRecipient(
        tenant_id=tenant,
        customer_id=customer(index),
        email=f"{mailbox}@{_MAIL[tenant]}",
        name=name,
        language="en" if english else "ja",
    )


RECIPIENTS = tuple(_recipient(tenant, index) for tenant, count in CUSTOMERS.items() for index in range(count))
