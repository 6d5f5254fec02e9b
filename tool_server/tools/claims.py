"""The document family: four reads of one claim, each of which states one thing and judges nothing."""

from __future__ import annotations

from tool_server.call import Answer, Call
from tool_server.store.pool import Pool
from tool_server.store.queries import queries
from tool_server.store.reading import read
from tool_server.tools import Handler

CLAIMS = queries("claims")


async def get_case_snapshot(pool: Pool, call: Call) -> Answer:
    """Read the classified documents, and the rules that the case is bound to."""
    return await read(pool, CLAIMS["get_case_snapshot"], call)


async def get_policy_requirements(pool: Pool, call: Call) -> Answer:
    """Read what the version that was asked for requires; it has to be the case's own."""
    asked = {"rule_set": call.arguments["rule_set"], "requested_at": call.details.requested_at}
    return await read(pool, CLAIMS["get_policy_requirements"], call, **asked)


async def list_unclassified_documents(pool: Pool, call: Call) -> Answer:
    """Read which documents nobody has classified."""
    return await read(pool, CLAIMS["list_unclassified_documents"], call)


async def resolve_document_alias(pool: Pool, call: Call) -> Answer:
    """Read what a rule that was in effect names a document by its title."""
    asked = {"document_id": call.arguments["document_id"], "requested_at": call.details.requested_at}
    return await read(pool, CLAIMS["resolve_document_alias"], call, **asked)


HANDLERS: dict[str, Handler] = {
    "caseops_get_case_snapshot": get_case_snapshot,
    "caseops_get_policy_requirements": get_policy_requirements,
    "caseops_list_unclassified_documents": list_unclassified_documents,
    "caseops_resolve_document_alias": resolve_document_alias,
}
