"""The pages that people read: their code blocks, and whether each command in them is one that stands."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import typer
import typer.main

from host import cli as host_cli
from tool_server import cli as tools_cli

ROOT = Path(__file__).parents[2]
PROGRAMS = {"kessai": host_cli.app, "kessai-tools": tools_cli.app}


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a language, without the indentation of a list they stand in."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", page, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def commands(page: str) -> list[list[str]]:
    """Every call of our two programs in shell blocks."""
    lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    return [words for line in lines if (words := _ours(shlex.split(line, comments=True)))]


def mentions(page: str) -> list[list[str]]:
    """The same in the text, between backticks; there arguments may be left out."""
    named = re.findall(r"`((?:kessai|kessai-tools) [a-z][^`]*)`", page.replace("\n", " "))
    return [shlex.split(text) for text in named]


def _ours(words: list[str]) -> list[str]:
    start = next((at for at, word in enumerate(words) if word in PROGRAMS), len(words))
    end = next((at for at, word in enumerate(words) if at > start and word in {"<", "|", ">", "&&"}), len(words))
    return words[start:end]


@cache
def _program(name: str) -> Any:
    return typer.main.get_command(PROGRAMS[name])


def complaint(words: list[str]) -> str | None:
    """What the program would say of a command that it does not know; None where it knows it."""
    if words[1:] == ["--help"]:
        return None
    command: Any = _program(words[0])
    parent, rest = None, words[1:]
    try:
        while hasattr(command, "commands"):
            parent = command.context_class(command, info_name=words[0], parent=parent)
            if not rest:
                return f"{words[0]}: no command"
            _, command, rest = command.resolve_command(parent, rest)
        command.make_context(words[0], list(rest), parent=parent)
    except _USAGE as error:
        return f"{shlex.join(words)}: {error}"
    return None


_USAGE: type[Exception] = typer.BadParameter.__bases__[0]  # what a command line raises for every mistake
