"""A nursery whose programs survive what they are sent: python -m tests.crash.immortal MODULE…"""

from __future__ import annotations

import os

from host.evaluation.crash import nursery


def main() -> None:
    kill, name = os.kill, "kill"
    setattr(os, name, lambda pid, number: None if pid == os.getpid() else kill(pid, number))
    nursery.main()


if __name__ == "__main__":
    main()
