"""Every command's exit codes, said once: the help of the command and the runbook's table are made from this.

Invariant: a code means the same kind of thing whatever the command; what exactly stands beside the command.
"""

from __future__ import annotations

from collections.abc import Mapping

from host.commands.exits import Exit

# what a code means whatever was typed
KINDS: dict[Exit, str] = {
    Exit.DONE: "done, or shown",
    Exit.FAILED: "a fault of ours or of the planner, or the answer is no: not confirmed, not passed, not fixed",
    Exit.BAD_INPUT: "bad input, or an act that is not possible: it says what would be; nothing was changed",
    Exit.NOTHING_COMPARED: "there was nothing to compare, which is no agreement",
    Exit.WAITING_APPROVAL: "the case waits for a person's yes or no",
    Exit.NEEDS_REVIEW: "a person has the case",
    Exit.EXPIRED: "nobody said yes in time",
    Exit.COMPENSATION_REQUIRED: "something has to be undone",
    Exit.STOPPED: "refused, halted or still stopped, because work is stopped",
    Exit.NOT_READY: "not ready: database, tool server, settings' files, versions, rights, disk",
    Exit.NOT_ADMITTED: "refused, because the rollout does not let this case in, or nobody has said that none runs",
    Exit.INTERRUPTED: "interrupted with Ctrl-C; what was committed stands",
}

_OPTION = "bad input: an option, a setting"
_CASE = "no such case, an option, a setting"
_DATABASE = "not ready: database, settings' files"
_STACK = "not ready: home, disk, PostgreSQL, a program of the stack; it says which and what mends it"

_OWNER = "not ready: database, the owner's connection, settings' files"
_REPORT = (
    "no report of an evaluation, one of another build, data or cases, one without every tool's contract tests, "
    "or one that is recorded already; no such operator"
)


def _three(done: str, bad: str = _OPTION, not_ready: str = _DATABASE) -> dict[Exit, str]:
    return {Exit.DONE: done, Exit.BAD_INPUT: bad, Exit.NOT_READY: not_ready}


_DECIDED = _three(
    "the decision was taken",
    "refused, not confirmed, or bad input: it says what would be possible; nothing was changed",
    "not ready: database, keys, settings' files",
)

CODES: Mapping[str, Mapping[Exit, str]] = {
    "run": {
        Exit.DONE: "the business has its answer: COMPLETED or REJECTED",
        Exit.WAITING_APPROVAL: "WAITING_APPROVAL: a person has to say yes or no",
        Exit.NEEDS_REVIEW: "NEEDS_REVIEW: a person has the case",
        Exit.EXPIRED: "EXPIRED: nobody said yes in time",
        Exit.COMPENSATION_REQUIRED: "COMPENSATION_REQUIRED: something has to be undone",
        Exit.STOPPED: "refused, or halted, because work is stopped",
        Exit.NOT_READY: "not ready: database, tool server, settings' files, versions",
        Exit.NOT_ADMITTED: "not taken in: the stage that is open is for others, or none is; nothing was written",
        Exit.BAD_INPUT: "bad input: a case, an option, a setting",
        Exit.FAILED: "the run failed by a fault of ours or of the planner",
    },
    "baseline": {
        **_three("judged", "bad input: a case, an option, a kind without a baseline"),
        Exit.STOPPED: "refused, because reads are stopped",
        Exit.NOT_READY: "not ready: database, tool server, settings' files, versions",
    },
    "approve": _DECIDED,
    "deny": _DECIDED,
    "withdraw": _three(
        "withdrawn", "the case does not wait for an approval: it says what is possible; or it is not known"
    ),
    "reapply": {
        **_three(
            "the new case is there", "the case has not ended, or has made something: it says what; nothing was changed"
        ),
        Exit.STOPPED: "refused, because new work is stopped",
        Exit.NOT_ADMITTED: "not taken in: the stage that is open is for others, or none is; nothing was written",
    },
    "review": {
        **_three(
            "done", "not possible where the case stands, no such operator, or bad input: it says what would be possible"
        ),
        Exit.NEEDS_REVIEW: "adopt: what was made cannot be adopted; what is known of it by now is recorded",
        Exit.NOT_READY: "not ready: database, tool server, settings' files",
    },
    "compensate": _three(
        "let through: a worker undoes it, or kessai run ID",
        "nothing of the case is being undone, nothing holds it, or no such operator: nothing was changed",
    ),
    "stop": _three(
        "stopped",
        "no such operator, or no reason: nothing was changed",
        "not ready: database, settings' files; NOT known to be stopped",
    ),
    "resume": {
        **_three(
            "lifted, released, or several at a time again",
            "nothing is stopped or held, no such operator, state, number or reason: nothing was changed",
            "not ready: database, the owner's connection, settings' files",
        ),
        Exit.STOPPED: "the stop stays, or cases are still held: it says what nobody knows, what is still to be undone, "
        "or which part comes next; what was counted is recorded",
    },
    "check": _three(
        "what was found is recorded",
        "no such case, one that has not ended or that was checked by the same person, no such operator",
        "not ready: database, the owner's connection, settings' files",
    ),
    "release record": {
        **_three("recorded: new cases begin under it", _REPORT, _OWNER),
        Exit.FAILED: "not recorded: the gate says no, or nobody known has signed the report; it names each reason",
    },
    "release rollback": _three(
        "new cases begin under it", "no such release, none that passed, no such operator: nothing was changed", _OWNER
    ),
    "release list": _three("listed"),
    "rollout status": _three("shown, and the form is written", "bad input: an option, a setting, a form that is there"),
    "rollout open": _three(
        "open", "another is open, the one before is not passed, no release is recorded, no such operator", _OWNER
    ),
    "rollout close": {
        **_three("passed, or given up", "it is not open, no such operator, or no reason: nothing was changed", _OWNER),
        Exit.FAILED: "it stays open: what stands against it is named",
    },
    "rollout waive": _three("no rollout runs", "a stage is open, no such operator, or no reason", _OWNER),
    "show": _three("shown", _CASE),
    "list": _three("listed, also where there is none"),
    "explain": _three("explained", _CASE),
    "handover": _three("written", "nobody has to take the case over, or it is not known: it says what is possible"),
    "ledger": _three("exported, also where there is nothing", _CASE),
    "reconcile": {
        **_three(
            "both sides agree: nothing untracked, missing or duplicate",
            "bad input: an option, a setting, a report that is there already",
            "not ready: databases, roles, settings, versions",
        ),
        Exit.FAILED: "they differ: what differs is printed by its id",
        Exit.NOTHING_COMPARED: "nothing was compared: neither side has a row",
    },
    "audit verify": {
        **_three(
            "whole: every line is what was sealed, and each side has what the other kept",
            "bad input: an option, a setting, keys, no export",
            "not ready: databases, roles, settings, versions",
        ),
        Exit.FAILED: "it is not: what was changed, removed, put in, reordered or cut off is named",
        Exit.NOTHING_COMPARED: "nothing was compared: nothing is sealed on either side",
    },
    "audit export": _three(
        "exported, also where nothing is sealed",
        "bad input: an option, a setting, a file that is there already",
        "not ready: databases, roles, settings, versions",
    ),
    "audit cut": {
        **_three(
            "cut, also where nothing is so old",
            "KESSAI_RECORD_DAYS is not set, the auditors' connections or keys are missing, or an option",
            "not ready: databases, roles, settings, versions",
        ),
        Exit.FAILED: "nothing was cut: the record is not whole, and what is wrong is named",
    },
    "audit restored": _three("it is noted", not_ready="not ready: database"),
    "audit erase": _three(
        "the words are gone", "no such sealed row, or its words are gone already", "not ready: database"
    ),
    "diagnose": {
        **_three("nothing deviates", _CASE, "not ready: databases, roles, settings, versions"),
        Exit.FAILED: "a first deviation is named",
    },
    "contract-test": {
        **_three(
            "every item of every tool held",
            "no such tool, one that only reads, an option, a setting: nothing was started",
            _STACK,
        ),
        Exit.FAILED: "an item of a tool did not hold: it says which, and what was seen",
    },
    "crash-matrix": {
        **_three(
            "every cell is right, and both sides agree",
            "no such path, an option, a setting, a report that is there already: nothing was started",
            _STACK,
        ),
        Exit.FAILED: "a cell is wrong, or a kill did not fire: it says which, and what was seen",
    },
    "tools": {Exit.DONE: "shown", Exit.BAD_INPUT: "no such tool, or an option"},
    "states": {Exit.DONE: "shown", Exit.BAD_INPUT: _OPTION},
    "eval run": {
        Exit.DONE: "passed: the gate says yes to the report, which with --faults is of faults alone",
        Exit.FAILED: "not passed: it names each reason and the ids; the report is written all the same",
        Exit.BAD_INPUT: "bad input: cases, an option, other data than the pinned, a report that is there already",
        Exit.NOT_READY: "not ready: home, disk, PostgreSQL, a program, another evaluation that runs; no report",
    },
    "eval retail": {
        Exit.DONE: "passed: every return was made once and everything else was refused, as the file has it",
        Exit.FAILED: "not passed: it names each reason and the ids; the report is written all the same",
        Exit.BAD_INPUT: "bad input: the file, an option, other rights than the pinned, a report that is there already",
        Exit.NOT_READY: "not ready: home, disk, PostgreSQL, a program, another evaluation that runs; no report",
    },
    "eval report": {
        Exit.DONE: "passed: the gate says yes to the report as it was counted again",
        Exit.FAILED: "not passed: it names each reason and the ids; the report is written all the same",
        Exit.BAD_INPUT: "no run came to its end there, an option, or a report that is there already",
        Exit.NOT_READY: "no evaluation of this build, PostgreSQL, or another evaluation that runs; no report",
    },
    "demo": {
        Exit.DONE: "each of the four was seen to hold",
        Exit.FAILED: "one was not: it says which",
        Exit.BAD_INPUT: "bad input: an option, other data or rights than the pinned",
        Exit.NOT_READY: "not ready: home, disk, PostgreSQL, a program, another demonstration that runs",
    },
    "eval drop": _three("nothing of it is left", not_ready="an evaluation runs, or the directory cannot be emptied"),
    "eval gate": {
        Exit.DONE: "passed",
        Exit.FAILED: "not passed, or refused: it names each reason and the ids",
        Exit.BAD_INPUT: "no report of an evaluation, or of another format; a file of keys that is none",
    },
    "eval html": _three(
        "written, whatever it says",
        "no report of an evaluation, or the file cannot be written",
        "what draws the pictures is not installed",
    ),
    "eval compare": {
        Exit.DONE: "fixed: what had failed is as expected, nothing is worse",
        Exit.FAILED: "partly fixed, no effect, or a regression: it says which",
        Exit.BAD_INPUT: "no report of an evaluation, two that cannot be compared, or no place for what comes of it",
    },
    "up": _three("up", not_ready=_STACK),
    "down": _three("down", not_ready=_STACK),
    "status": _three(
        "what should run does, or nothing should",
        not_ready="a part has died, is not ready, or is missing of what kessai up brought up",
    ),
    "doctor": _three("all is well", not_ready="something is not, and it says what mends it"),
    "backup": _three("the backup is there", "bad input: a directory, an option, a setting", _STACK),
    "restore": _three(
        "the home is there, and stopped",
        "bad input: a directory, an option, a setting",
        "not ready: home, backup, disk, PostgreSQL; nothing was made",
    ),
    "empty": {
        **_three("empty", "settings name another place: nothing was removed", _STACK),
        Exit.FAILED: "not confirmed: nothing was removed",
    },
    "worker": _three("drained", not_ready="not ready: database, tool server, settings' files, versions"),
    "migrate": _three(
        "the schema is this program's",
        not_ready="not ready: database, owner's rights, a newer schema, a version that asks for other approvals",
    ),
    "secrets": _three("they are there", not_ready="not ready: the directory, or a file in it"),
    "keys list": _three("listed", not_ready="not ready: the home or the directory, or a file in it"),
    "keys rotate": _three(
        "the new key signs; or, for other machines, it is published",
        "bad input: a directory, an option, a setting; there is no key to go on with",
        "not ready: a file of a key, or the tool server does not take the new key: published, and not signing yet",
    ),
    "keys revoke": _three(
        "its tokens are refused, and another key signs; or, elsewhere, it says what its operator has to do",
        "bad input: no such key, a directory, a setting; nothing was changed",
        "not ready: a file of a key, PostgreSQL, a program of the stack; the keys' files are changed by then",
    ),
    "token issue": {
        **_three("issued", "not granted: principal, scope, tool, order"),
        Exit.STOPPED: "refused: updates, or reads too, are stopped",
        Exit.NOT_READY: "not ready: database, tool server, settings' files",
    },
    "token list": _three("listed"),
    "approver add": _three("the key is there and counts", "no such approver, a key that is there, a passphrase"),
    "approver trust": _three("the key counts", "no public half, or of nobody in the authorization set"),
    "approver list": _three("listed"),
    "approver revoke": _three("the key counts no more", "no such name, or no key that counts"),
}


def table(name: str) -> str:
    """Write a command's codes for its help, one line each."""
    return "\n".join(f"  {code.value:>2}  {meaning}" for code, meaning in sorted(CODES[name].items()))
