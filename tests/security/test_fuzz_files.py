"""Whatever stands in a file that a person gives, who reads it takes it or says why not, in the error that is told.

A command ends such an error with its code and a sentence; any other exception would be a trace on somebody's screen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from host.commands import evaluate_beside
from host.commands.approver_keys import read_public
from host.commands.audit import _exported
from host.commands.evaluate import read_report
from host.commands.exits import CommandError
from host.commands.run import prepare
from host.database import NotReadyError
from host.engine.accept import CaseError
from host.evaluation.compare import compare
from host.evaluation.gate import gate
from host.evaluation.rates import PACKAGED, read_rates
from host.rights import read_authorization
from host.sealing import read_keys
from host.stack.errors import StackError
from host.stack.keys import new_key, read_signing_key, trusted_issuers
from host.stack.manifest import read_backup
from shared_contracts.approval import jwk_of
from shared_contracts.base import dump
from shared_contracts.evaluation_cases import Refused, read_cases
from shared_contracts.evaluation_retail import read_retail
from shared_contracts.seal import SealKey, SealKeys, UnsealedError, signer_of
from tests.support.evaluations import document
from tests.support.fuzzing import examples, texts
from tests.support.tokens import Issuer
from tests.support.tool_approvals import Person
from tests.support.tool_orders import line, order, seed
from tool_server import load as shop
from tool_server import load_cases as cases
from tool_server import loads
from tool_server.approvers import ApproverError, read_approver
from tool_server.errors import TrustError
from tool_server.keys import Keyring
from tool_server.load import SeedError
from tool_server.load_retail import retail_seed

ROOT = Path(__file__).parents[2]
PLACE = TemporaryDirectory()
TOLD_MAX = 4000
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null|[\[\]{}:,=]')


@dataclass(frozen=True)
class Reader:
    """`good` gives a file's content, `read` does what a command does with it, `refuses` is how it says no."""

    good: Callable[[Path], bytes]
    read: Callable[[Path], Any]
    refuses: tuple[type[Exception], ...] = ()


def _packaged(*path: str) -> Callable[[Path], bytes]:
    return lambda _: ROOT.joinpath(*path).read_bytes()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _seal_keys(_: Path) -> bytes:
    host, tools = (SealKey(**dump(jwk_of(Ed25519PrivateKey.generate().public_key()))) for _ in range(2))
    return _json(dump(SealKeys(host=(host,), tools=(tools,))))


def _export(_: Path) -> bytes:
    about: dict[str, Any] = {name: [] for name in ("restored", "restored_there", "unsealed")}
    sealed = json.dumps({"action": "noted", "committed_in": "7", "at": "2026-07-30T10:00:00Z"})
    lines: list[Any] = [{"format": "kessai-record-1"}]
    for side in ("host", "tools"):
        lines.append({"side": side, "chain": "0198c2f4-0000-7000-8000-000000000000", "cut": None, **about})
        lines += [{"side": side, "head": "a.b.c"}, {"side": side, "kept": [1, "a.b.c"]}]
        lines += [{"side": side, "line": [n, "audit", str(n), sealed, "0" * 64, False]} for n in (1, 2)]
    return b"\n".join(_json(one) for one in [*lines, {"end": {"host": 2, "tools": 2}}]) + b"\n"


def _jwks(path: Path) -> Any:
    issuers = path.with_name("issuers.json")
    issuers.write_bytes(_json([{"issuer": "https://host.example", "jwks_file": path.name, "tenants": ["acme"]}]))
    return Keyring(issuers)


def _secret(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    def closed(path: Path) -> Any:
        path.chmod(0o600)
        return read(path)

    return closed


def _manifest(path: Path) -> Any:
    path.rename(path.with_name("manifest.json"))
    return read_backup(path.parent)


def _load(path: Path) -> Any:
    """As far as the database."""
    content = shop.content_of(path)
    mark = loads._mark(content)
    return retail_seed(content, None) if mark == loads.RETAIL else _PARSED[mark](content)


def _gate(path: Path) -> Any:
    report = read_report(path)
    return gate(report), compare(report, report)


_PARSED: dict[str, Callable[[bytes], Any]] = {"orders": shop.parse_seed, "cases": cases.parse_seed}
_keys = cache(lambda: SealKeys.model_validate_json(_seal_keys(Path())))
READERS: dict[str, Reader] = {
    "an authorization set": Reader(_packaged("host", "data", "authz-v7.json"), read_authorization, (NotReadyError,)),
    "a case": Reader(
        _packaged("examples", "returns", "normal.json"), lambda path: prepare(str(path), None, None),
        (CommandError, CaseError),
    ),
    "a public half": Reader(lambda where: Person.named("sato").file(where).read_bytes(), read_public, (CommandError,)),
    "an approver": Reader(
        lambda where: Person.named("sato").file(where).read_bytes(), read_approver, (ApproverError,)
    ),
    "a set of keys": Reader(lambda where: Issuer.at(where).jwks_file.read_bytes(), _jwks, (TrustError,)),
    "issuers": Reader(lambda where: Issuer.at(where).issuers_file.read_bytes(), Keyring, (TrustError,)),
    "issuers at the host": Reader(
        lambda where: Issuer.at(where).issuers_file.read_bytes(), trusted_issuers, (StackError,)
    ),
    "a signing key": Reader(lambda _: _json(new_key()), _secret(read_signing_key), (StackError,)),
    "a sealing key": Reader(
        lambda _: _json(new_key()), lambda path: signer_of("host", path.read_bytes()), (UnsealedError,)
    ),
    "keys of seals": Reader(_seal_keys, read_keys, (UnsealedError,)),
    "an export of the record": Reader(_export, lambda path: _exported(path, _keys()), (CommandError,)),
    "orders": Reader(lambda _: seed(order("A-1", line())).model_dump_json().encode(), _load, (SeedError,)),
    "a retail shop": Reader(_packaged("examples", "retail", "shop.json"), _load, (SeedError,)),
    "right returns": Reader(_packaged("examples", "retail", "shop.json"), read_retail),
    "cases of an evaluation": Reader(_packaged("host", "data", "evaluation", "duplicate.toml"), read_cases),
    "rates": Reader(lambda _: PACKAGED.read_bytes(), read_rates),
    "a report": Reader(lambda _: _json(document([])), _gate, (CommandError,)),
    "contract tests": Reader(
        lambda _: b'{"build": "b", "passed": true, "tools": []}', evaluate_beside.tests_of_file, (CommandError,)
    ),
    "a manifest": Reader(lambda _: b'{"format": 1, "host": {}, "tools": {}}', _manifest, (StackError,)),
}  # fmt: skip
NOT_WHOLE = {"contract tests", "a manifest"}  # they would have to be of this build, or to have dumps beside them


@cache
def _made(name: str) -> tuple[Path, bytes]:
    """A directory for the file, and its good content, which has keys of its own in every process."""
    where = Path(PLACE.name, name.replace(" ", "-"))
    where.mkdir()
    return where, READERS[name].good(where)


def _spoilt(draw: st.DrawFn, good: bytes) -> bytes:
    """Another text, or the good one with some of its words replaced, doubled or gone, or cut, or with noise in it."""
    body = bytearray(good)
    for _ in range(draw(st.integers(0, 3))):
        words = list(_TOKEN.finditer(body))
        if not words:
            break
        at = words[draw(st.integers(0, len(words) - 1))]
        match draw(st.sampled_from(("other", "gone", "twice", "noise"))):
            case "other":
                body[at.start() : at.end()] = draw(texts).encode("utf-8", "surrogatepass")
            case "gone":
                del body[at.start() : at.end()]
            case "twice":
                body[at.start() : at.start()] = body[at.start() : draw(st.integers(at.end(), len(body)))]
            case _:
                body[at.start() : at.start()] = draw(st.binary(max_size=6))
    match draw(st.sampled_from(("", "", "", "cut", "text", "utf-16"))):
        case "cut":
            return bytes(body[: draw(st.integers(0, len(body)))])
        case "text":
            return draw(texts).encode("utf-8", "surrogatepass")
        case "utf-16":
            return bytes(body).decode("utf-8", "replace").encode("utf-16")
        case _:
            return bytes(body)


@pytest.mark.parametrize("name", READERS)
@examples(60)
@given(data=st.data())
def test_what_reads_a_file_takes_it_or_says_why_not(name: str, data: st.DataObject) -> None:
    where, good = _made(name)
    (where / "given").write_bytes(data.draw(st.composite(_spoilt)(good)))
    said = "taken"
    try:
        READERS[name].read(where / "given")
    except READERS[name].refuses as error:
        said = str(error)
    assert 0 < len(said) < TOLD_MAX
    assert "Traceback" not in said


@pytest.mark.parametrize("name", sorted(READERS.keys() - NOT_WHOLE))
def test_the_good_file_that_they_are_made_from_is_taken(name: str) -> None:
    where, good = _made(name)
    (where / "given").write_bytes(good)
    taken = READERS[name].read(where / "given")
    assert taken is not None
    assert not isinstance(taken, Refused)
