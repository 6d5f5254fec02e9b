"""What a shell completes: the values of closed choices, looked up when it asks; none where they cannot be read."""

from __future__ import annotations


def states() -> list[str]:
    """Give every state of the kinds that there are."""
    from host.workflows.catalogue import state_names

    return list(state_names())


def kinds() -> list[str]:
    """Give the kinds of workflow."""
    from host.workflows.catalogue import CURRENT

    return list(CURRENT)


def tools() -> list[str]:
    """Give the tools' names."""
    from shared_contracts.tools import TOOLS

    return list(TOOLS)


def writes() -> list[str]:
    """Give the names of the tools that write."""
    from shared_contracts.tools import TOOLS

    return [name for name, tool in TOOLS.items() if tool.writes]


def crash_paths() -> list[str]:
    """Give the ways of writing on which programs are killed."""
    from host.evaluation.crash.paths import BY_NAME

    return list(BY_NAME)


def reading_scopes() -> list[str]:
    """Give the scopes that a token may be given by name."""
    from shared_contracts.contract import READING

    return [scope.value for scope in sorted(READING)]


def principals() -> list[str]:
    """Give the names of the authorization set that the settings name."""
    from host import settings
    from host.database import NotReadyError
    from host.rights import read_authorization

    try:
        return [one.name for one in read_authorization(settings.load().authz_file).principals]
    except (settings.SettingsError, NotReadyError):  # the command itself says what is wrong with them
        return []


def components() -> list[str]:
    """Give the parts of which one may have been changed between two evaluations."""
    from typing import get_args

    from shared_contracts.evaluation_report import Component

    return list(get_args(Component))
