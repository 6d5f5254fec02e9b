"""The signature of an evaluation's report, by the key that seals the host's record in the home where it was run.

Invariant: it covers every member of the report but itself, whatever bytes the report comes in. Who holds the key can
sign anything: it shows where a report is from, and not that what stands in it was seen.
"""

from __future__ import annotations

import hashlib
import json

from shared_contracts.base import dump
from shared_contracts.digest import canonical_json
from shared_contracts.evaluation_report import EvaluationReport
from shared_contracts.seal import SealKeys, Signer, UnsealedError, keys_of, payload_of

TYPE = "kessai-evaluation+jws"


def signed(report: EvaluationReport, signer: Signer) -> EvaluationReport:
    """Sign a report; the same one by the same key has the same signature."""
    return report.model_copy(update={"signature": signer.signed(TYPE, _payload(report))})


def unsigned(report: EvaluationReport, keys: SealKeys) -> str | None:
    """Say why it is no report that one of these keys has signed for a host; None where it is one."""
    try:
        payload = payload_of(report.signature, TYPE, keys_of(keys, "host"))
    except UnsealedError as error:
        return str(error)
    return None if payload == _payload(report) else "its signature is of another report"


def _payload(report: EvaluationReport) -> bytes:
    members = dump(report)
    del members["signature"]
    # it has seconds and prices, which are no integers, so that its form is not the canonical one
    text = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return canonical_json({"sha256": hashlib.sha256(text.encode("ascii")).hexdigest()})
