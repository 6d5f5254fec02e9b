"""`keys list`, `rotate`, `revoke`: which keys verify tokens, and which one signs them.

On one machine the running tool server is asked whether it takes a new key before anything is signed with it, and it is
told of a revoked one by a process of its own. What lies in a directory of secrets, somebody brings to other machines.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from host.commands import sheets
from host.commands.exits import CommandError, Exit
from host.commands.machine import PATH_BYTES
from host.commands.output import console, say, write_json
from host.commands.workplace import choice
from host.key_views import KeyList, KeyState, KeyView
from host.settings import Settings, elsewhere, home_root
from host.stack import rotation
from host.stack.assembly import TOOL_SERVER, resource_at, revoke_key
from host.stack.home import Home, existing_home
from host.stack.keys import KeyFiles, issuer_of, key_files, published_in, read_signing_key, trusted_issuers
from host.stack.processes import run_to_end
from host.stack.secrets import keys_of_secrets
from host.stack.stack import temporary_parts
from host.stack.status import PartState, status
from shared_contracts.base import dump
from shared_contracts.named_file import unnameable

TOOLS_SECONDS_MAX = 60.0
TAKEN_SECONDS_MAX = 10.0
TAKEN_SECONDS_MAX_STOLEN = 0.5  # whoever has a stolen key does not wait


def _place(settings: Settings, directory: Path | None) -> tuple[KeyFiles, Home | None]:
    """Where the keys lie; the home, where they are a home's."""
    if directory is not None:
        if (why := unnameable(directory, PATH_BYTES)) is not None:
            raise CommandError(Exit.BAD_INPUT, f"{directory} cannot be read: {why}", "Nothing was changed.")
        return keys_of_secrets(directory), None
    if (names := elsewhere(settings)) is not None:
        what = f"{names} send commands to another machine's tool server, whose keys are not this home's"
        raise CommandError(Exit.BAD_INPUT, what, "Name the directory that kessai secrets made: --in DIRECTORY")
    root = home_root(settings)
    home = existing_home(root)
    if home is None or not key_files(home).signing.exists():
        what = f"there is no key in {root}"
        raise CommandError(Exit.BAD_INPUT, what, "kessai up makes one; or name a directory of secrets: --in DIRECTORY")
    return key_files(home), home


def listed(settings: Settings, directory: Path | None, *, as_json: bool) -> None:
    """List what the files publish."""
    page = KeyList(keys=tuple(_views(_place(settings, directory)[0])))
    if as_json:
        write_json(dump(page))
    else:
        sheets.keys(console(), page)


def _views(files: KeyFiles) -> list[KeyView]:
    following = rotation.next_key(files)
    states: dict[object, KeyState] = {read_signing_key(files.signing)["kid"]: "signing"}
    if following is not None:
        states[following["kid"]] = "next"
    now, views = time.time(), []
    for row in trusted_issuers(files.issuers):
        jwks = files.issuers.parent / row["jwks_file"]
        ours = jwks == files.jwks
        views += [
            _view(str(row["issuer"]), key, _state(key, states) if ours else "trusted")
            for key in published_in(jwks)
            if not rotation.is_over(key, now)
        ]
    return views


def _state(key: dict[str, Any], states: Mapping[object, KeyState]) -> KeyState:
    return "revoked" if rotation.is_cut_off(key) else states.get(key.get("kid"), "old")


def _view(issuer: str, key: dict[str, Any], state: KeyState) -> KeyView:
    end = key.get("exp")
    ends_at = datetime.fromtimestamp(end, UTC) if type(end) is int else None
    return KeyView(kid=str(key.get("kid")), issuer=issuer, algorithm=str(key.get("alg")), state=state, ends_at=ends_at)


async def rotate(settings: Settings, directory: Path | None, *, published: bool) -> None:
    """Publish, see that it is taken, sign; or, for other machines, one of the two."""
    files, home = _place(settings, directory)
    if published and directory is None:
        raise CommandError(Exit.BAD_INPUT, "--published is for a directory of secrets", "Leave it out, or name --in.")
    with rotation.changing(files):
        if rotation.finish(files, time.time()):
            kid = read_signing_key(files.signing)["kid"]
            say(f"a rotation had been cut short, and is finished: {kid} signs, and the key before it has its end")
            return
        if published and rotation.next_key(files) is None:
            mend = f"First: kessai keys rotate --in '{directory}'"
            raise CommandError(Exit.BAD_INPUT, "no key is published that does not sign yet", mend)
        following = rotation.publish_next(files, time.time())
        if home is None and not published:
            _say_bring(files, str(following["kid"]), directory)
            return
        if home is not None and (why := await _not_taken(home, following, TAKEN_SECONDS_MAX)) is not None:
            what = f"the tool server does not take the new key: {why}"
            mend = "It is published and signs nothing yet. Mend that, then the same command goes on: kessai keys rotate"
            raise CommandError(Exit.NOT_READY, what, mend)
        kid = rotation.sign_with_next(files, time.time())
    say(f"{kid} signs from now on; the key before it is published for another {files.old_stays // 60} minutes")
    if home is None:
        say(f"bring {files.signing} to the workers within the hour, and {files.jwks} to every tool server again")


def _say_bring(files: KeyFiles, kid: str, directory: Path | None) -> None:
    say(f"{kid} is published in {files.jwks} and signs nothing yet")
    say(f"bring that file to every tool server, then: kessai keys rotate --in '{directory}' --published")


async def _not_taken(home: Home, key: dict[str, Any], seconds: float) -> str | None:
    """Say why the running tool server refuses tokens of a key; None where it takes them, or none runs."""
    parts = (await status(home.root)).parts
    port = next((part.port for part in parts if part.name == TOOL_SERVER and part.state is PartState.RUNNING), None)
    if port is None:
        return None  # it reads the files when it starts
    from host.tool_client.mint import Minter, SigningKey
    from host.tool_client.readiness import why_refused

    url = resource_at(port)
    minter = Minter(SigningKey.from_jwk(key), issuer_of(home), url)
    return await why_refused(url, minter.probe, seconds)


async def revoke(settings: Settings, kid: str, directory: Path | None) -> None:
    """Refuse a key's tokens; where it signs, another one does first."""
    files, home = _place(settings, directory)
    known = {view.kid: view for view in _views(files)}
    if kid not in known:
        mend = f"Published are {', '.join(sorted(known))}; for one that was: kessai-tools revoke --kid=KID"
        raise CommandError(Exit.BAD_INPUT, f"no key {kid!r} is published", mend)
    with rotation.changing(files):
        if known[kid].state != "trusted":
            await _cut_off(files, home, kid)
        if home is not None:
            async with temporary_parts(home.root, choice(settings)) as parts:
                await run_to_end(home, revoke_key(parts, kid), TOOLS_SECONDS_MAX)
        rotation.forget(files, kid)
    say(f"{kid} is revoked; {read_signing_key(files.signing)['kid']} signs")
    if home is None:
        say("nothing of that has reached another machine yet; for every tool server at once, its operator runs:")
        say(f"  kessai-tools revoke --kid={kid}")
        say(f"then bring {files.jwks} to every tool server and, after it, {files.signing} to the workers")


async def _cut_off(files: KeyFiles, home: Home | None, kid: str) -> None:
    if read_signing_key(files.signing)["kid"] == kid:
        if (beside := rotation.next_key(files)) is not None:  # it lay beside the stolen one
            rotation.cut_off(files, beside["kid"])
            rotation.forget(files, beside["kid"])
        following = rotation.publish_next(files, time.time())
        if home is not None and (why := await _not_taken(home, following, TAKEN_SECONDS_MAX_STOLEN)) is not None:
            say(f"the tool server has not taken the new key yet: {why}; it signs all the same")
        rotation.sign_with_next(files, time.time())
    rotation.cut_off(files, kid)
