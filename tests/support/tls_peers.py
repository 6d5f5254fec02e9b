"""A call and a mail to servers with certificates, in a program of its own: whom it trusts is read at its start.

    SSL_CERT_FILE=trusted.pem python -m tests.support.tls_peers NAME.pem …

One line of JSON for each certificate: how the call and the mail ended, and how many requests and commands arrived.
"""

from __future__ import annotations

import json
import ssl
import sys

from host.tool_client.client import ToolClient
from tests.support.calling import PROBE, READ, request, run, told
from tests.support.hostile_server import FakeToolServer
from tests.support.smtp import honest_server
from tool_server.mail import Smtp, SmtpServer

MAIL = b"From: returns@shop.example\r\nTo: c-1@example.com\r\n\r\nhello\r\n"


async def call(tls: ssl.SSLContext) -> tuple[str, int]:
    """Give how a call ended, and how many requests had come through the certificate."""
    async with FakeToolServer(tls=tls) as server, ToolClient(server.url, lambda: PROBE) as client:
        outcome = await client.call(request(READ))
        return " ".join(told(outcome)).strip(), len(server.received)


async def mail(tls: ssl.SSLContext) -> tuple[str, int]:
    """Give how a mail ended, and how many had been taken."""
    async with honest_server(tls) as server:
        sender = Smtp(SmtpServer("127.0.0.1", server.port, "implicit", "shop.example", None, None))
        return type(await sender.deliver("<1@shop.example>", MAIL)).__name__, len(server.messages)


async def main(certificates: list[str]) -> None:
    """Try them one after the other."""
    for name in certificates:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(name)
        sys.stdout.write(json.dumps([await call(tls), await mail(tls)]) + "\n")


if __name__ == "__main__":
    run(main(sys.argv[1:]))
