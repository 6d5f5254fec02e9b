"""`python -m tests.bench.run [--json FILE] [--only NAME…]`: measure, and print each figure beside its bound.

`tests.bench` says how to read them. A missed bound is shown and is no error; what would not be durable is one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvloop

from tests.bench import (
    abuse,
    approving,
    claims,
    command,
    counts,
    durable,
    evaluation,
    governed,
    isolation,
    returns,
    waiting,
)
from tests.bench.figures import Figure, as_json, show
from tests.bench.stand import NotDurableError, Stand, machine, stand

ORDERS = 5_000
NOT_DURABLE = 15
Measure = Callable[[Stand], Awaitable[list[Figure]]]


async def _durable(made: Stand) -> list[Figure]:
    async with returns.opened(made, durable.IN_FLIGHT) as driver:
        return await durable.measure(made, driver)


async def _counts(made: Stand) -> list[Figure]:
    async with returns.opened(made, 1) as driver:
        return await counts.measure(made, driver)


MEASURES: dict[str, tuple[str, Measure]] = {
    "counts": ("Counts of one normal return", _counts),
    "durable": ("Durable steps", _durable),
    "alone": ("A normal return on a running stack, alone", returns.measure_alone),
    "in-flight": ("Normal returns, 8 in flight", returns.measure_in_flight),
    "queue": ("Normal returns through the queue", returns.measure_queued),
    "claims": ("A claim's four reads on a running stack", claims.measure),
    "governed": ("A governed read beside the bare server's", governed.measure),
    "isolation": ("Rows bound to the token, read by read", isolation.measure),
    "abuse": ("A right client while another floods the tool server", abuse.measure),
    "waiting": ("100,000 workflows waiting", waiting.measure),
    "approving": ("A person's yes", approving.measure),
    "command": ("From the command to COMPLETED", command.measure),
    "evaluation": ("The evaluation and the crash matrix", evaluation.measure),
}


async def bench(names: list[str]) -> tuple[dict[str, Any], list[Figure]]:
    """Run the measures in their order; each prints its table as soon as it is there."""
    everything: list[Figure] = []
    async with stand(ORDERS) as made:
        about = machine(made)
        print(" · ".join(f"{name} {value}" for name, value in about.items()))  # noqa: T201 - what a command is for
        for name in names:
            title, measure = MEASURES[name]
            load = os.getloadavg()[0]
            found = await measure(made)
            show(f"{title} (load average {load:.1f} → {os.getloadavg()[0]:.1f})", found)
            everything += found
    return about | {"load_average_after": [round(load, 2) for load in os.getloadavg()]}, everything


def main() -> None:
    """Read the arguments and run on the loop that a worker has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--only", nargs="+", choices=MEASURES, metavar="NAME", help=f"of: {', '.join(MEASURES)}")
    asked = parser.parse_args()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            about, found = runner.run(bench(list(MEASURES) if asked.only is None else asked.only))
    except NotDurableError as error:
        print(f"nothing is reported: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(NOT_DURABLE)
    if asked.json is not None:
        asked.json.write_text(json.dumps(as_json(about, found), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    missed = [figure.name.strip() for figure in found if figure.met() is False]
    print("every bound is met" if not missed else f"missed: {', '.join(missed)}")  # noqa: T201


if __name__ == "__main__":
    main()
