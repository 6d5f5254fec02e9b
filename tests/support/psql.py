"""The psql of the embedded PostgreSQL, as an operator or the database's container would run it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from host.stack.binaries import wheel_directory

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy" / "provision.sql"


def run_script(dsn: str, secrets: Path, script: Path = SCRIPT) -> subprocess.CompletedProcess[str]:
    """With the options of the official image's entry point, and where the secrets lie."""
    known = conninfo_to_dict(dsn)
    argv = [str(wheel_directory() / "psql"), "-v", "ON_ERROR_STOP=1", "--no-password", "--no-psqlrc"]
    argv += ["--host", str(known["host"]), "--port", str(known["port"]), "--username", str(known["user"])]
    argv += ["--dbname", str(known["dbname"]), "-v", f"secrets={secrets}", "-f", str(script)]
    environment = {"PATH": os.environ["PATH"], "PGPASSWORD": str(known["password"])}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=60)
