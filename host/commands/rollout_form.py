"""The form by which a production migration is evaluated: every gate's values, from the stored records alone.

Invariant: nothing in it is computed from what is not recorded, so that the same records give the same page.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from host.commands.exits import CommandError, Exit
from host.commands.output import say
from host.evaluation.counted import PerItem, Rate, Rates
from host.evaluation.documents import Claim, GateView
from host.handover.blocks import Cell, Note, Pairs, Section, Table, Verbatim, at
from host.handover.markdown import markdown
from host.rollout_views import OpenStageView, RolloutAct, RolloutView
from host.stack.files import SECRET_MODE, write_new
from host.store import releases
from host.store.pool import Pool
from shared_contracts.base import parse

TITLE = "Production migration evaluation form"
_STAGE_HEAD = (
    "stage", "act", "at", "by", "releases", "cases", "compared", "untracked", "missing", "duplicate",
    "unfinished compensations", "checked", "wrong", "observed", "why",
)  # fmt: skip
DAY = 86400


async def write_form(pool: Pool, view: RolloutView, name: str) -> None:
    """Write the page to a new file; raises CommandError."""
    async with pool.connection() as connection:
        history = await releases.history(connection)
    try:
        write_new(Path(name), form(history, view), SECRET_MODE)
    except OSError as error:
        mend = "Name a new file in a directory of your own; one that is there is evidence, and stays."
        raise CommandError(Exit.BAD_INPUT, f"the form cannot be written to {name}: {error.strerror}", mend) from error
    say(f"form  {name}")


def form(history: list[releases.Act], view: RolloutView) -> str:
    """Write the page."""
    gates = tuple(_gate(one) for one in history if one.gate is not None)
    return markdown(TITLE, (_releases(history), *gates, _stages(view), _now(view), _open_points(view)))


def _releases(history: list[releases.Act]) -> Section:
    head = ("at", "act", "kind", "release", "left", "report", "build", "evaluated", "by", "why")
    rows = tuple(
        (at(one.at), one.act, one.kind, Verbatim(one.release), _some(one.left_release), _some(one.report_sha256),
         _some(one.build), at(one.evaluated_at), Verbatim(one.actor), Verbatim(one.reason))
        for one in history
    )  # fmt: skip
    return Section("Releases", (Table(head, rows, "No release is recorded."),))


def read_gate(act: releases.Act) -> GateView | None:
    """Read what the gate said; None of a rollback, and of what a program of another version wrote."""
    try:
        return None if act.gate is None else parse(GateView, act.gate)
    except ValidationError:
        return None


def _gate(act: releases.Act) -> Section:
    title, gate = f"Pre-production gate of {act.release}, record {act.act_id}", read_gate(act)
    if gate is None:
        build = "of another build" if act.build is None else f"of build {act.build}"
        return Section(title, (Note(f"It passed. All that was said is kept, and is read by the program {build}."),))
    v = gate.versions
    versions = Pairs((
        ("report (SHA-256)", Verbatim(act.report_sha256 or "")),
        ("workflow release", Verbatim(v.workflow_release)),
        ("rules", Verbatim(v.policy)),
        ("rights", Verbatim(v.authz)),
        ("orders", Verbatim(v.order_snapshot)),
        ("tools", Verbatim(", ".join(f"{name} {version}" for name, version in sorted(v.tools.items())))),
        ("planner, model", Verbatim(f"{v.planner}, {v.model}")),
        ("cases (SHA-256), seed, at a time", Verbatim(f"{v.dataset_sha256}, {v.seed}, {v.concurrency}")),
    ))  # fmt: skip
    head = ("condition", "", "known by")
    conditions = tuple(
        (one.condition.value.replace("_", " "), "held" if one.held else "failed", Verbatim(one.said))
        for one in gate.conditions
    )
    severe = ("severe incidents", str(len(gate.severe)), Verbatim("one is enough"))
    n = gate.measures.n
    rates = tuple((name.replace("_", " "), _rate(getattr(gate.measures.rates, name))) for name in Rates.model_fields)
    per_item = "-" if gate.cost.per_item is None else f"{gate.cost.per_item}"
    cost = ("cost per correctly completed case", Verbatim(f"{per_item} {gate.cost.currency} (minor unit)"))
    claims = tuple((one.subject.replace("_", " "), *_claimed(one)) for one in gate.claims)
    return Section(title, (
        Note(f"The gate says: {gate.said}. {n} cases."),
        versions,
        Table(head, (*conditions, severe), ""),
        Pairs((*rates, cost)),
        Table(("of", "code exists", "contract test passes", "live system tried"), claims, ""),
    ))  # fmt: skip


def _claimed(one: Claim) -> tuple[Cell, ...]:
    return tuple(Verbatim(shown.said) for shown in (one.code_exists, one.contract_test_passes, one.live_system_tried))


def _rate(rate: Rate | PerItem) -> Cell:
    value = "not counted" if rate.value is None else f"{rate.value}{'' if isinstance(rate, PerItem) else ' %'}"
    return Verbatim(f"{value} ({rate.of} of {rate.n})")


def _stages(view: RolloutView) -> Section:
    rows = tuple(_row(one) for one in view.history)
    note = Note("A stage is passed by its cases. How long it was open is shown, and passes nothing.")
    return Section("Stages", (note, Table(_STAGE_HEAD, rows, "No stage was opened.")))


def _row(one: RolloutAct) -> tuple[Cell, ...]:
    p = one.passed
    counts: tuple[int, ...] = () if p is None else (
        p.cases, p.compared, p.untracked, p.missing, p.duplicate, p.uncompensated, p.checked, p.wrong,
    )  # fmt: skip
    releases_of = "-" if one.releases is None else Verbatim(", ".join(sorted(one.releases.values())))
    shown = tuple(map(str, counts)) if counts else ("-",) * 8
    observed = "-" if p is None else f"{p.observed_seconds / DAY:.1f} days"
    return (
        "-" if one.stage is None else str(one.stage), one.act, at(one.by.at), Verbatim(one.by.name), releases_of,
        *shown, observed, Verbatim(one.by.reason),
    )  # fmt: skip


def _now(view: RolloutView) -> Section:
    stage = () if view.stage is None else (_open_stage(view.stage),)
    rate = view.rate
    pairs = Pairs((
        ("status", Verbatim(view.said)),
        ("through all stages", Verbatim(", ".join(view.through) if view.through else "none")),
        ("cases at a time", "several" if view.several_at_a_time else "one"),
        ("checked after the last stage", f"one of {rate.one_in}; {rate.incidents} incidents in the newest 50"),
        ("checks", f"{rate.checks}, of which {rate.wrong} found something wrong"),
    ))  # fmt: skip
    return Section("Where it stands", (pairs, *stage))


def _open_stage(stage: OpenStageView) -> Pairs:
    return Pairs((
        ("open stage", f"{stage.stage}, {stage.of}"),
        ("cases", f"{stage.cases} taken in and {stage.ended} ended, of {stage.due}"),
        ("checked", f"{stage.checked}, of which {stage.wrong} are wrong"),
        ("unfinished compensations", str(stage.uncompensated)),
    ))  # fmt: skip


def _open_points(view: RolloutView) -> Section:
    against = () if view.stage is None else view.stage.against
    rows = tuple((one,) for one in against) + tuple(
        (f"case {one.workflow_id} is to be checked",) for one in view.to_check
    )
    return Section("Open points", (Table(("what",), rows, "None that is recorded."),))


def _some(text: str | None) -> Cell:
    return "-" if text is None else Verbatim(text)
