"""Writes the schemas of cases and of the commands' documents beside those of the wire: `python -m host.generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from host import check_views, key_views, record_views, rollout_views, stop_views, views
from host.evaluation import contract_documents, diagnosis, documents
from host.evaluation.crash import documents as crash_documents
from host.workflows.catalogue import CURRENT
from shared_contracts.base import wire_schema
from shared_contracts.generate import FOLDER, render

DOCUMENTS: dict[str, type[BaseModel]] = {
    "baseline": views.BaselineView,
    "list": views.WorkflowList,
    "ledger": views.Ledger,
    "token_list": views.TokenList,
    "keys_list": key_views.KeyList,
    "approver_list": views.ApproverList,
    "approve": views.DecisionTaken,
    "review": views.Reviewed,
    "stop": stop_views.StopView,
    "resume": stop_views.ResumeView,
    "withdraw": views.Withdrawn,
    "reapply": views.Reapplied,
    "explain": views.Explanation,
    "states": views.StateSheets,
    "tools": views.Catalogue,
    "status": views.StackView,
    "doctor": check_views.Checks,
    "reconcile": documents.Reconciliation,
    "audit_verify": record_views.RecordVerified,
    "audit_export": record_views.RecordExported,
    "audit_cut": record_views.RecordCut,
    "diagnose": diagnosis.Diagnosis,
    "contract_test": contract_documents.ContractTests,
    "crash_matrix": crash_documents.CrashMatrix,
    "backup": views.BackupView,
    "restore": views.RestoreView,
    "release_list": rollout_views.ReleaseList,
    "rollout": rollout_views.RolloutView,
    "check": rollout_views.CaseChecked,
    "eval_gate": documents.GateView,
    "eval_compare": documents.CompareView,
    "demo": documents.DemoView,
}


def schemas() -> dict[str, dict[str, Any]]:
    """Give every schema under its file name: a case and a result per kind, a document per reading command."""
    cases = {f"case.{kind}": workflow.case for kind, workflow in CURRENT.items()}
    results = {f"result.{kind}": workflow.outcome for kind, workflow in CURRENT.items()}
    documents = {f"command.{name}": model for name, model in DOCUMENTS.items()}
    return {f"{name}.json": wire_schema(model) for name, model in (cases | results | documents).items()}


def write(folder: Path) -> None:
    """Write all files."""
    for name, schema in schemas().items():
        (folder / name).write_text(render(schema), encoding="utf-8")


if __name__ == "__main__":
    write(FOLDER)
