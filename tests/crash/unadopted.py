"""A nursery whose hosts never adopt what a look-up finds: python -m tests.crash.unadopted MODULE…"""

from __future__ import annotations

from host.engine import reconcile
from host.evaluation.crash import nursery


def main() -> None:
    found = "_found"
    setattr(reconcile, found, lambda _parts, step, _tool, _record: reconcile._unknown(step))
    nursery.main()


if __name__ == "__main__":
    main()
