"""Registration forms as YAML: written, read back without loss, and read from the two short shapes of a contract.

A short shape may give `required_scope` for the authorization, bare `argument: source` pairs for the input, and
states each precondition of the target as `name: true` beside the scope, which is also how they are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from shared_contracts.form import FormAuthorization, FormInput, ToolForm


class FormError(ValueError):
    """The text is no registration form; the message says where."""


def _stated(authorization: dict[str, Any]) -> dict[str, Any]:
    """Gather what is stated of the target beside the scope into one list."""
    own = {name: value for name, value in authorization.items() if name in FormAuthorization.model_fields}
    stated = {name: fact for name, fact in authorization.items() if name not in own}
    if any(fact is not True for fact in stated.values()):
        raise FormError("authorization: a precondition is stated as `name: true`, or left out")
    return own | ({"preconditions": list(stated)} if stated else {})


def _sources(given: dict[str, Any]) -> dict[str, Any]:
    """Read pairs of argument and source that stand for the whole input."""
    return given if set(given) & set(FormInput.model_fields) else {"sources": given}


def _normal(document: Any) -> Any:
    """Bring the short shapes into the one that the model has; everything else is the model's to judge."""
    if not isinstance(document, dict):
        raise FormError("a form is a mapping that begins with `name:`")
    values = dict(document)
    if "required_scope" in values:
        if "authorization" in values:
            raise FormError("give required_scope or authorization, not both")
        values["authorization"] = {"actor_scope": values.pop("required_scope")}
    shapes: tuple[tuple[str, Callable[[dict[str, Any]], dict[str, Any]]], ...] = (
        ("authorization", _stated),
        ("input", _sources),
    )
    for name, shape in shapes:
        if isinstance(values.get(name), dict):
            values[name] = shape(values[name])
    return values


def _load(document: Any) -> ToolForm:
    try:
        return ToolForm.model_validate_json(json.dumps(_normal(document)))
    except (TypeError, ValidationError) as error:
        # TypeError: YAML knows dates and binaries, which no form has; a quoted value stays text
        raise FormError(f"this is no registration form: {error}") from error


def load_forms(text: str) -> tuple[ToolForm, ...]:
    """Read every form of a stream of YAML documents; raises FormError."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise FormError(f"this is no YAML: {error}") from error
    return tuple(_load(document) for document in documents)


def load_form(text: str) -> ToolForm:
    """Read the one form in a text; raises FormError."""
    forms = load_forms(text)
    if len(forms) != 1:
        raise FormError(f"one form is expected, and the text has {len(forms)}")
    return forms[0]


def dump_form(one: ToolForm) -> str:
    """Write a form as YAML, without what it leaves open."""
    values = one.model_dump(mode="json", exclude_defaults=True)
    if one.authorization is not None:
        stated = dict.fromkeys(one.authorization.preconditions, True)
        values["authorization"] = {"actor_scope": one.authorization.actor_scope, **stated}
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)


def dump_forms(forms: Sequence[ToolForm]) -> str:
    """Write several forms as one stream of YAML documents."""
    return "---\n".join(dump_form(one) for one in forms)
