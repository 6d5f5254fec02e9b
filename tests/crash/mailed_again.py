"""A nursery whose tool servers let a mail leave again though it lies there: python -m tests.crash.mailed_again …"""

from __future__ import annotations

import secrets
from typing import Any

from host.evaluation.crash import nursery
from tool_server.mail import Maildir

_link = Maildir._link


def _again(maildir: Any, name: str, content: bytes) -> None:
    _link(maildir, f"{name}.{secrets.token_hex(4)}", content)


def main() -> None:
    for name, instead in (("_stands", lambda _maildir, _name: False), ("_link", _again)):
        setattr(Maildir, name, instead)
    nursery.main()


if __name__ == "__main__":
    main()
