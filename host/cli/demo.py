"""`kessai demo`, which touches nothing that is real."""

from __future__ import annotations

import sys

from host.cli.launch import launch
from host.cli.options import Json


def demo(as_json: Json = False) -> None:
    """Show four things on real programs: the wait before another try, the confirmation query, a compensation, a stop.

    Each is one case, in a home beside yours that is made for it and removed after it. What is shown was read off the
    ledger, the tool server and the mail server afterwards. It takes half a minute.

    \b
    kessai demo
    kessai demo --json | jq '.shown[] | select(.held | not)'
    """
    from host import settings
    from host.commands import demo as showing

    sys.exit(launch(showing.demo(settings.load(), as_json=as_json)))
