"""RUNBOOK.md tells of everything that can happen, and every command and setting in it is one that there is."""

from __future__ import annotations

import re
import shlex

import pytest

from host import settings as host_settings
from host.domain.authorization import NO_RULE, RULES
from host.domain.reasons import HANDOVER
from host.runbook import BEGIN, END, FILE, replaced
from host.runbook_texts import AUTHORIZATION, STACK
from host.runbook_texts import HANDOVER as HANDOVER_TEXTS
from host.stack.errors import StackProblem
from shared_contracts.errors import ERRORS
from tests.support.compose import ROOT, SERVICES
from tests.support.pages import blocks, commands, complaint, mentions
from tool_server import settings as tools_settings

PAGE = FILE.read_text("utf-8")
READERS = ("RUNBOOK.md", "compose.yaml", "docs/dependencies.md")


def test_the_generated_part_is_up_to_date() -> None:
    assert replaced(PAGE) == PAGE, "run python -m host.runbook"


def test_every_reason_is_explained_and_no_other() -> None:
    assert set(AUTHORIZATION) == {rule.reason for rule in RULES} | {NO_RULE.reason}
    assert set(HANDOVER_TEXTS) <= set(HANDOVER)
    assert set(HANDOVER) - set(HANDOVER_TEXTS) <= set(ERRORS)
    assert set(STACK) == set(StackProblem)


def test_every_error_code_has_its_row() -> None:
    part = PAGE.partition(BEGIN)[2].partition(END)[0]
    for code in ERRORS:
        assert part.count(f"\n| `{code}` | {ERRORS[code].category} |") == 1


@pytest.mark.parametrize("page", ["", BEGIN, END, BEGIN + BEGIN + END, f"{BEGIN}{END}{END}"])
def test_a_page_that_lost_its_markers_is_not_written_over(page: str) -> None:
    with pytest.raises(ValueError, match="must have each marker once"):
        replaced(page)


@pytest.mark.parametrize("name", ["RUNBOOK.md", "README.md", "examples/returns/README.md", "examples/claims/README.md"])
def test_every_command_that_is_named_is_one_that_there_is(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    said = [complaint(words) for words in commands(page)]
    said += [text for words in mentions(page) if (text := complaint(words)) is not None and "Missing" not in text]
    assert len(said) > 0 or name != "RUNBOOK.md"
    assert [text for text in said if text is not None] == []


def test_a_command_that_there_is_not_would_be_found() -> None:
    assert commands("```sh\nKESSAI_HOME=x kessai fly --now < file  # up\n```\n") == [["kessai", "fly", "--now"]]
    for words in (["kessai", "fly"], ["kessai", "list", "--unheard-of"], ["kessai-tools", "tools", "fly"]):
        assert complaint(words) is not None


@pytest.mark.parametrize("page", READERS)
def test_every_setting_that_is_named_is_one_that_a_program_reads(page: str) -> None:
    models = {
        "KESSAI_": (host_settings.Settings,),
        "KESSAI_TOOLS_": (tools_settings.Settings, tools_settings.OwnerSettings),
    }
    known = {
        f"{prefix}{name}".upper() for prefix, group in models.items() for model in group for name in model.model_fields
    }
    named = set(re.findall(r"KESSAI_[A-Z_]*[A-Z]", (ROOT / page).read_text("utf-8")))
    assert named <= known


def test_every_service_that_is_named_is_one_of_compose_yaml() -> None:
    lines = [line for block in blocks(PAGE, "sh") for line in block.splitlines() if line.startswith("docker compose")]
    named = []
    for line in lines:
        words = [word for word in shlex.split(line, comments=True)[2:] if not word.startswith("-")]
        words = words[2:] if "--profile demo" in line else words
        named += [word for verb, *rest in (words,) for word in rest[:1] if verb in {"exec", "run", "restart"}]
    assert len(named) >= 4
    assert set(named) <= set(SERVICES)


def test_every_part_of_the_page_that_is_linked_to_is_there() -> None:
    heads = {
        re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-")
        for head in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= heads
