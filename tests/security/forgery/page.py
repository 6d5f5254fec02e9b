"""What is tried and what it meets, by kind; `python -m tests.security.forgery.page` writes `docs/forgeries.md`.

Invariant: the page is made from the attempts themselves, and a test compares.
"""

from __future__ import annotations

from pathlib import Path

from tests.security.forgery.attempt import Answer
from tests.security.forgery.every import REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "forgeries.md"
_HEAD = """# What is tried against the tool server, and what it meets

Made by `python -m tests.security.forgery.page` from `tests/security/forgery`; a test compares. `make security` tries it
all on a server in a process of its own, over real bytes, with a database behind it. Looked at are, after each attempt:
the status and the code; that the body is, byte for byte, that of every other attempt with this answer; that no table
but the call log changed; that the call log has the row that it must have, or none; that no twelve characters in a row
of a token stand in the answer, the call log or the process's log. Beside each kind is the right request, which passes.

`401 token_invalid` without a reason is all that anybody learns whose signature did not hold. A reason is told to whom
the signature proves genuine. A code after 200 is a tool's refusal, in a result.

| what is tried | attempts | what it meets |
|---|---|---|
"""


def page() -> str:
    """One row for each kind, in the order in which they are made."""
    kinds: dict[str, list[Answer]] = {}
    for one in REFUSED:
        assert one.answer is not None
        kinds.setdefault(one.kind, []).append(one.answer)
    rows = [f"| {kind} | {len(met)} | {', '.join(dict.fromkeys(map(_told, met)))} |\n" for kind, met in kinds.items()]
    total = f"\n{len(REFUSED)} attempts of {len(kinds)} kinds.\n"
    return _HEAD + "".join(rows) + total


def _told(answer: Answer) -> str:
    parts = [str(answer.status), answer.code, answer.reason]
    return "`" + " ".join(part for part in parts if part is not None) + "`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
