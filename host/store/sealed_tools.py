"""The statements of `host.store.sealed` for the tool server's database, where its auditor reads its sealed log."""

from __future__ import annotations

from host.store.queries import load_queries

STATEMENTS = load_queries(__file__)
