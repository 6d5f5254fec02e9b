"""What `kessai doctor` shows."""

from __future__ import annotations

from shared_contracts.base import Contract


class CheckView(Contract):
    """One check; `mend` is empty where all is well. With one, what is well is warned of."""

    check: str
    well: bool
    detail: str
    mend: str


class Checks(Contract):
    """`kessai doctor`."""

    well: bool
    checks: tuple[CheckView, ...]
