"""`demo`: four things shown on real programs, in a home of its own."""

from __future__ import annotations

from rich.text import Text

from host.commands.evaluate_run import OURS
from host.commands.exits import CommandError, Exit
from host.commands.output import console, write_json
from host.commands.progress import interruptible
from host.rights import read_authorization
from host.settings import Settings
from shared_contracts.base import dump
from shared_contracts.evaluation_cases import Refused, case_set, read_cases
from shared_contracts.printed import plain


async def demo(settings: Settings, *, as_json: bool) -> Exit:
    """Show them; raises CommandError, StackError, NotReadyError, SettingsError."""
    from host.commands.log import configure  # here, since the engine and the wire take a second to import
    from host.evaluation.demonstrate import CASES, demonstrate
    from host.evaluation.plan import UnfitError, plan

    configure()
    read = read_cases(OURS)
    if isinstance(read, Refused):
        raise CommandError(Exit.BAD_INPUT, read.problems[0], "Nothing was started.")
    authorization = read_authorization(settings.authz_file)
    cases = case_set(tuple(case for case in read.cases if case.id in CASES))
    try:
        todo = plan(settings, authorization, cases, len(CASES), 0, None)
        with interruptible("what worked was stopped and its home removed."):
            view = await demonstrate(settings, authorization, todo)
    except UnfitError as error:
        raise CommandError(Exit.BAD_INPUT, error.problems[0], "Nothing was started.") from error
    if as_json:
        write_json(dump(view))
    else:
        to = console()
        for one in view.shown:
            word, style = ("held", "bold green") if one.held else ("did not hold", "bold red")
            to.print(Text(f"{one.what.replace('_', ' ')}: {word}", style=style))
            for line in one.said:
                to.print(Text(f"  {plain(line)}"), soft_wrap=True)
    return Exit.DONE if view.held else Exit.FAILED
