"""An operator does what the authorization set says, by name, and nothing else."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from host.commands.doctor import _authorization
from host.commands.exits import CommandError, Exit
from host.commands.operators import operator_of
from host.database import NotReadyError
from host.domain.principals import Act, Operator
from host.settings import Settings
from shared_contracts.operator import operator

AUTHZ = Path(__file__).parents[2] / "host" / "data" / "authz-v7.json"


def settings_with(folder: Path, operators: list[dict[str, Any]]) -> Settings:
    document = json.loads(AUTHZ.read_text("utf-8")) | {"operators": operators}
    file = folder / "authz.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return Settings(authz_file=file)


@pytest.mark.parametrize("act", Act)
def test_the_example_set_has_one_operator_for_everything_and_one_who_only_stops(act: Act):
    assert operator_of(Settings(authz_file=AUTHZ), "sato", act)[0].covers("acme-jp")
    if act is not Act.STOP:
        with pytest.raises(CommandError) as told:
            operator_of(Settings(authz_file=AUTHZ), "ito", act)
        assert (told.value.code, told.value.mend) == (Exit.BAD_INPUT, "Who could: sato.")


@pytest.mark.parametrize("name", ["", "root", "Sato", "sato ", "tanaka", "returns-desk@acme-jp"])
def test_a_name_that_is_no_operators_is_refused_with_who_could(name: str):
    with pytest.raises(CommandError) as told:
        operator_of(Settings(authz_file=AUTHZ), name, Act.STOP)
    assert told.value.code is Exit.BAD_INPUT
    assert "is no operator" in told.value.what
    assert told.value.mend == "Who could: ito, sato."


def test_an_act_that_nobody_may_do_is_refused_and_says_so(tmp_path: Path):
    settings = settings_with(tmp_path, [{"name": "sato", "tenant_id": "*", "may": []}])
    for name in ("sato", "ito"):
        with pytest.raises(CommandError) as told:
            operator_of(settings, name, Act.RESUME)
        assert told.value.mend == "The authorization set gives this act to nobody."


@pytest.mark.parametrize(
    "one",
    [
        {"name": "sato", "tenant_id": "*"},
        {"name": "sato", "may": ["stop"]},
        {"name": "sato", "tenant_id": "*", "may": ["everything"]},
        {"name": "sato", "tenant_id": "*", "may": "stop"},
        {"name": "sato", "tenant_id": None, "may": ["review"]},
        {"name": "sato", "tenant_id": "acme-jp", "may": ["stop"]},
        {"name": "sato", "tenant_id": "acme-jp", "may": ["review", "resume"]},
    ],
)
def test_what_an_operator_may_is_written_out_and_stopping_is_for_every_tenant(tmp_path: Path, one: dict[str, Any]):
    with pytest.raises(NotReadyError, match="operators"):
        operator_of(settings_with(tmp_path, [one]), "sato", Act.REVIEW)


def test_a_set_without_operators_is_no_set(tmp_path: Path):
    document = json.loads(AUTHZ.read_text("utf-8"))
    del document["operators"]
    file = tmp_path / "authz.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(NotReadyError, match="operators: is missing"):
        operator_of(Settings(authz_file=file), "sato", Act.STOP)


def test_two_operators_of_one_name_are_refused(tmp_path: Path):
    twice = [{"name": "sato", "tenant_id": tenant, "may": ["review"]} for tenant in ("acme-jp", "hoshi-jp")]
    with pytest.raises(NotReadyError, match="names an operator twice"):
        operator_of(settings_with(tmp_path, twice), "sato", Act.REVIEW)


def test_an_operator_of_one_tenant_covers_no_other():
    one = Operator(name="kato", tenant_id="acme-jp", may=frozenset({Act.REVIEW}))
    assert (one.covers("acme-jp"), one.covers("hoshi-jp"), one.covers("*")) == (True, False, False)
    with pytest.raises(ValidationError):
        Operator.model_validate({"name": "kato", "tenant_id": "acme-jp", "may": ["stop"]})


def test_who_runs_a_command_is_the_systems_word_whatever_a_variable_says(monkeypatch: pytest.MonkeyPatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "sato")
    assert operator() == pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert operator() == "uid-4000000000"


def test_the_doctor_says_which_set_counts_and_that_the_programs_own_is_an_example(tmp_path: Path):
    own, broken = settings_with(tmp_path, [{"name": "sato", "tenant_id": "*", "may": []}]), tmp_path / "none.json"
    example, chosen, lost = map(_authorization, (Settings(), own, Settings(authz_file=broken)))
    assert (example.well, "an example" in example.detail, "KESSAI_AUTHZ_FILE" in example.detail) == (True, True, True)
    assert (chosen.well, chosen.detail) == (True, f"authz-v7 of {own.authz_file}")
    assert (lost.well, str(broken) in lost.detail) == (False, True)
