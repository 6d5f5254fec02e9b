"""What a retail shop's file is loaded as: its tenant, its rule set, and the label of its invented dates."""

from __future__ import annotations

from datetime import date
from typing import Final

TENANT: Final = "retail"
POLICY_VERSION: Final = "retail-demo-1"


def snapshot_of(delivered_on: date | None) -> str:
    """Name the data: whoever reads the name knows that its dates are invented, or that there are none."""
    overlay = "no delivery dates" if delivered_on is None else f"overlay: all deliveries on {delivered_on}"
    return f"{TENANT}, {overlay}"
