"""The tokens that were verified before, so that a token which is kept is paid for once.

Invariant: an entry says that these very bytes were found right under the keys that are trusted now, and no more. Keys
that were read again leave none; whoever finds one asks about time again, and about revocation as for any other token.
The tokens themselves are not kept, only their digests. Their number is bounded: what was asked for least lately goes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from tool_server.call import Caller
from tool_server.keys import Trust

SEEN_MAX = 2_000  # about 8 MB; a host's own tokens are good for one call each and pass through
SWEEP_SECONDS = 10.0


class Seen:
    """Callers by the digest of their token, the one that was asked for last at the end."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._callers: OrderedDict[bytes, Caller] = OrderedDict()
        self._swept_at = 0.0

    def under(self, trust: Trust, now: float) -> None:
        """Go on under these keys at this time (in seconds); what other keys signed goes, and what has expired."""
        if trust is not self._trust:
            self._trust = trust
            self._callers.clear()
        if not self._swept_at <= now < self._swept_at + SWEEP_SECONDS:  # a clock can be set back, too
            self._swept_at = now
            for digest in [digest for digest, caller in self._callers.items() if caller.claims.exp <= now]:
                del self._callers[digest]

    def find(self, digest: bytes) -> Caller | None:
        """Give whom this token was found to be."""
        return self._callers.get(digest)

    def keep(self, digest: bytes, caller: Caller) -> None:
        """Remember a caller whose token has passed every check just now."""
        self._callers[digest] = caller
        self._callers.move_to_end(digest)
        if len(self._callers) > SEEN_MAX:
            self._callers.popitem(last=False)

    def drop(self, digest: bytes) -> None:
        """Forget one whose time is over."""
        del self._callers[digest]


def digest_of(token: str) -> bytes:
    """Digest a token's exact characters: another spelling of the same claims is another token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
