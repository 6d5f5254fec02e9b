"""A tiny program to be started, adopted, drained and killed: it answers on /readyz and writes down its environment.

python stand_in.py PORT ENVIRONMENT_FILE [stubborn | unready | dies]
"""

from __future__ import annotations

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import FrameType

MANNER = sys.argv[3] if len(sys.argv) > 3 else ""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        ready = self.path == "/readyz" and MANNER != "unready"
        self.send_response(200 if ready else 503)
        self.end_headers()


def end(_number: int, _frame: FrameType | None) -> None:
    sys.stderr.write("drained\n")
    sys.exit(0)


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN if MANNER == "stubborn" else end)
    Path(sys.argv[2]).write_text(json.dumps(dict(os.environ)))
    if MANNER == "dies":
        sys.exit("no good reason")
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()


if __name__ == "__main__":
    main()
