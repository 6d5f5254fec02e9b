"""compose.yaml as tests read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
SECRETS = "/run/secrets"


def ours(program: str) -> dict[str, dict[str, Any]]:
    """The services that run one of our two programs, `kessai` or `kessai-tools`."""
    return {name: service for name, service in SERVICES.items() if service.get("command", [""])[0] == program}


def environment(service: dict[str, Any]) -> dict[str, str]:
    return dict(service.get("environment", {}))


def secrets_of(service: dict[str, Any]) -> set[str]:
    return set(service.get("secrets", []))
