"""The document family on the wire: which documents a claim has, which its rules require, what an alias rule names.

Everything here is a fact with its version and its evidence; whether the documents suffice is decided elsewhere.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shared_contracts.base import Contract, Identifier, Line, Reference

DocumentCode = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Z][A-Z0-9_]*$")]
Codes = Annotated[tuple[DocumentCode, ...], Field(max_length=100)]
RuleVersion = Annotated[str, Field(min_length=1, max_length=30, pattern=r"^[A-Za-z0-9._-]+$")]
RuleSet = Annotated[str, Field(min_length=3, max_length=120, pattern=r"^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+$")]
DOCUMENTS_MAX = 100  # of one case: what one answer may hold
DocumentVersion = Annotated[int, Field(ge=1)]


class GetCaseSnapshot(Contract):
    """Arguments of `caseops_get_case_snapshot`."""

    case_id: Identifier


class CaseSnapshot(Contract):
    """Result: the documents that are classified, and the one version of the rules that the case is bound to."""

    case_id: Identifier
    version: DocumentVersion
    rule_set: RuleSet
    received_document_codes: Codes
    evidence_ref: Reference


class GetPolicyRequirements(Contract):
    """Arguments of `caseops_get_policy_requirements`."""

    case_id: Identifier
    rule_set: RuleSet


class PolicyRequirements(Contract):
    """Result: what that very version requires; `in_effect` tells whether it held when the question was asked."""

    case_id: Identifier
    rule_set: RuleSet
    owner: Line
    in_effect: bool
    required_document_codes: Codes
    evidence_ref: Reference


class ListUnclassifiedDocuments(Contract):
    """Arguments of `caseops_list_unclassified_documents`."""

    case_id: Identifier


class UnclassifiedDocument(Contract):
    """A document that nobody has given a code. `title` is untrusted text: it is looked up, never obeyed."""

    document_id: Identifier
    version: DocumentVersion
    title: Line


class UnclassifiedDocuments(Contract):
    """Result: the case's documents without a code, as of that version of the case."""

    case_id: Identifier
    version: DocumentVersion
    documents: Annotated[tuple[UnclassifiedDocument, ...], Field(max_length=DOCUMENTS_MAX)]
    evidence_ref: Reference


class ResolveDocumentAlias(Contract):
    """Arguments of `caseops_resolve_document_alias`."""

    case_id: Identifier
    document_id: Identifier


class DocumentAlias(Contract):
    """Result: what a governed rule names the document's title, by which version; unresolved where there is no rule."""

    case_id: Identifier
    document_id: Identifier
    resolved: bool
    canonical_code: DocumentCode | None
    rule_version: RuleVersion | None
    confidence: Annotated[float, Field(ge=0, le=1)]
    evidence_ref: Reference
