"""What a person does about each authorization reason, handover reason and stack problem, in words.

Which reasons there are stands in the code that gives them; a test holds both to each other.
"""
# ruff: noqa: E501 - one row per reason reads as a table

from __future__ import annotations

from host.stack.errors import StackProblem
from shared_contracts.errors import ERRORS

# What the rule found, and what to do about it.
AUTHORIZATION: dict[str, tuple[str, str]] = {
    "draft_only": ("The kind is in read-and-draft mode: no update of it is offered to anybody, whoever proposes it.", "`kessai status` says why; the case's draft (`kessai show ID`) is what is left to do by hand. See “Read-and-draft mode” in the runbook."),
    "unknown_tool": ("The planner named a tool that does not exist, or whose contract is incomplete.", "Nothing: the planner is told, and counted."),
    "not_in_catalogue": ("The requester may not use this tool at all.", "Add the tool to the principal in the authorization set, as a new version."),
    "tool_not_in_state": ("The workflow's state does not offer this tool.", "Nothing: the planner is told, and counted."),
    "foreign_tenant": ("The workflow belongs to another tenant than the requester.", "Treat it as an attempted breach: read the audit row, ask who sent the case."),
    "foreign_resource": ("The call is about another order than the case's own.", "The same; look at the message of the case for instructions in it."),
    "foreign_arguments": ("An argument that the case fixes has another value.", "The same."),
    "scope_missing": ("The requester lacks the tool's scope.", "Add the scope to the principal in the authorization set, as a new version."),
    "repeated_action": ("The same action has succeeded in this case before.", "Nothing: the planner is told, and counted."),
    "limit": ("The calls, the time, the planner's tokens or its money are used up (`KESSAI_DAILY_COST_MICROS`, in millionths of your currency; a planner that costs anything needs it).", "Read what the case spent them on, and decide it by hand."),
    "reads_stopped": ("Reading tools are stopped.", "Nothing: the case waits, and goes on when the stop is lifted."),
    "updates_stopped": ("Writing tools are stopped.", "Nothing: the case waits, and goes on when the stop is lifted."),
    "tool_unavailable": ("The tool server does not offer the tool, or offers another version of it.", "`kessai-tools tools list`; enable it, or deploy host and tool server of one release."),
    "approval_required": ("A person has to approve this.", "`kessai approve ID --as NAME`; after 24 hours it expires."),
    "write_allowed": ("No rule before it spoke against this write.", "-"),
    "read_allowed": ("No rule before it spoke against this read.", "-"),
    "no_rule": ("No rule matched, which denies.", "A defect of the rules: report it with the decision's stored facts."),
}  # fmt: skip

# Reasons of a handover that are not codes of the error page.
HANDOVER: dict[str, tuple[str, str]] = {
    "undecidable": ("The rules conflict, do not know what they met, or the data does not add up.", "Decide by hand; then complete the rules or mend the data."),
    "out_of_scope": ("The case asks for something else than a return.", "Answer what it asks; a plain return may be sent in as a new case."),
    "limit": AUTHORIZATION["limit"],
    "tool_not_in_state": ("The call that waited no longer fits the state.", "Read the call; decide by hand."),
    "repeated_action": ("The same action has succeeded in this case before.", "Read the earlier call; decide by hand."),
    "planner_exhausted": ("Too many proposals were refused: a defect of the planner.", "`kessai show` lists the refusals; decide by hand, mend the planner."),
    "planner_needs_human": ("The planner asked for a person.", "Decide by hand."),
    "model_refusal": ("The model declined to answer.", "Decide by hand."),
    "version_changed": ("Order snapshot, policy, authorization set or a tool's contract changed while the case ran.", "Send the case in again under a new request_id, with the versions that hold for it: see “New rules” in the runbook (KESSAI_ORDER_SNAPSHOT, KESSAI_POLICY_VERSION, KESSAI_AUTHZ_FILE). Where a write is `verified` already, go on by hand."),
    "data_missing": ("The planner says that data is missing to go on.", "Complete what `kessai show ID` shows as missing, then send the case in again under a new request_id."),
    "evidence_insufficient": ("What the case is about was there, and the facts to judge it by were not.", "Complete those data, then send the case in again under a new request_id."),
    "compensated": ("What was made is undone: cancelled and looked over, and corrected with a customer who had been told.", "Look at what is left to be told to the customer; then close the case."),
    "wrong_effect": ("What was made is not what was asked for, or what was to undo it did something else.", "Everything is stopped: look at the handover sheet, undo it by hand, then close the case."),
    "linked_entries": ("Other systems have made entries on the return, so that code cannot cancel it.", "Have inventory and accounting undo theirs; then order the compensation again or close the case."),
    "overdue": ("A step or a compensation took longer than it may.", "Find out what was slow; decide by hand."),
    "dangerous_goods": ("Goods that must not be sent with an ordinary label.", "Arrange a special collection."),
    "final_sale_defect": ("A defect is claimed of goods that are not taken back.", "Decide by hand."),
    "exception_claimed": ("A defect is claimed after the period.", "Decide by hand."),
    "create_rejected": ("The tool server's own rules refused the write.", "Read the call's error; somebody else may hold the quantity."),
    "denied": ("A rule denied the call.", "Read the decision that `kessai show` prints last."),
    "no_tool_left": ("State, requester, stops and health leave no tool.", "Compare the requester's tools and scopes with what the state offers."),
    "not_in_catalogue": AUTHORIZATION["not_in_catalogue"],
    "draft_only": AUTHORIZATION["draft_only"],
    "tool_unavailable": AUTHORIZATION["tool_unavailable"],
    "foreign_tenant": AUTHORIZATION["foreign_tenant"],
    "foreign_resource": AUTHORIZATION["foreign_resource"],
    "foreign_arguments": AUTHORIZATION["foreign_arguments"],
    "no_rule": AUTHORIZATION["no_rule"],
    "attempts_exhausted": ("Every attempt that the contract allows was made; nothing was executed.", "Mend what the attempts' errors name, then send the case in again under a new request_id."),
    "recoveries_exhausted": ("The case was taken up again too often: workers died on it, or the server was away.", "Look for what kills workers; then send the case in again under a new request_id."),
    "retry_suspended": ("Retries are suspended while more than 200 cases wait for a worker, or one has waited over 15 minutes.", "Start more workers, or find out what they wait for; then send the case in again under a new request_id."),
    "unknown_effect": ("A write may have happened, and no look-up could tell.", "See “An unknown effect” in the runbook."),
    "unsettled_elsewhere": ("Another case has an unknown effect on the same lines.", "Settle that one first, see “An unknown effect” in the runbook."),
    "unverified_effect": ("A write succeeded, and could not be read back.", "See “An unknown effect” in the runbook; the answer has the number."),
    "protocol": ("The tool server broke the protocol.", "`kessai doctor`; check what answers at the server's address."),
    "contract_broken": ("Our own request did not fit the tool's contract: a defect.", "Deploy host and tool server of one release; report it."),
}  # fmt: skip

STACK: dict[StackProblem, str] = {
    StackProblem.HOME_NOT_WRITABLE: "A directory cannot be written: rights, or a full disk.",
    StackProblem.HOME_NOT_OURS: "The home belongs to another user.",
    StackProblem.HOME_FOREIGN: "The directory holds other things than a home of ours; nothing was touched.",
    StackProblem.HOME_BUSY: "Another command is starting, stopping or changing it; or somebody works in what `run --fresh` was to empty.",
    StackProblem.HOME_TAKEN: "A restore wants a home of its own, and there is one already; nothing was touched.",
    StackProblem.HOME_UNFINISHED: "A restore into this home was killed: `kessai empty`, then restore again.",
    StackProblem.HOME_EMPTY: "There is no database in the home, so nothing to back up.",
    StackProblem.BACKUP_PLACE_UNUSABLE: "A backup cannot be written to the directory that was named; nothing was.",
    StackProblem.BACKUP_UNUSABLE: "The directory is no backup, not a whole one, one for another program, or one that holds more than rows.",
    StackProblem.SECRET_READABLE: "Others can read a secret. Whoever read it has it: make a new one.",
    StackProblem.SECRET_MISSING: "A secret's file is not there.",
    StackProblem.SECRET_MALFORMED: "A secret's file holds something else.",
    StackProblem.BINARIES_MISSING: "PostgreSQL's programs are not where they should be.",
    StackProblem.BINARIES_TOO_OLD: "The installed PostgreSQL is older than 15.",
    StackProblem.DATA_OF_OTHER_VERSION: "The data was made by another major version of PostgreSQL.",
    StackProblem.OS_USER_UNUSABLE: "PostgreSQL refuses to run as root, and the user to become is unusable.",
    StackProblem.PORT_IN_USE: "Another program has the port.",
    StackProblem.POSTGRES_FAILED: "PostgreSQL did not start; the last lines of its log follow.",
    StackProblem.POSTGRES_FOREIGN: "The server that answers is another cluster than this home's.",
    StackProblem.POSTGRES_NOT_STOPPING: "PostgreSQL does not stop.",
    StackProblem.PROGRAM_FAILED: "The tool server, the worker or a migration ended or did not get ready.",
    StackProblem.PROGRAM_OUTDATED: "A running program is of another version than this one.",
}


def explained(reason: str) -> tuple[str, str]:
    """Give what a handover reason means and what to do about it; total over all that there are."""
    if reason in HANDOVER:
        return HANDOVER[reason]
    row = ERRORS[reason]
    return f"{row.meaning[0].upper()}{row.meaning[1:]}", row.mend
