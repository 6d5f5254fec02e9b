"""Whom the programs go out to over TLS: a server whose certificate holds for its name, or nobody; and never without."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.smtp import honest_server
from tests.support.tls_peers import MAIL
from tool_server.mail import NotSent, Smtp, SmtpServer

DAY = timedelta(days=1)
LOOPBACK = x509.IPAddress(ip_address("127.0.0.1"))


def certificate(file: Path, name: x509.GeneralName, *, ends: timedelta = DAY) -> Path:
    """Write a certificate that vouches for itself, with its key."""
    key, now = Ed25519PrivateKey.generate(), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, file.stem)])
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - 2 * DAY)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


def test_a_token_and_a_mail_go_to_a_server_whose_certificate_holds_and_to_no_other(tmp_path: Path) -> None:
    right = certificate(tmp_path / "right.pem", LOOPBACK)
    others = certificate(tmp_path / "others.pem", x509.DNSName("tools.example"))
    over = certificate(tmp_path / "over.pem", LOOPBACK, ends=-DAY)
    unknown = certificate(tmp_path / "unknown.pem", LOOPBACK)
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(b"".join(file.read_bytes() for file in (right, others, over)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.tls_peers", *map(str, (right, others, over, unknown))],
        capture_output=True, text=True, check=True, timeout=60, env={**os.environ, "SSL_CERT_FILE": str(trusted)},
    )  # fmt: skip
    (call, mail), *rest = [json.loads(line) for line in done.stdout.splitlines()]
    assert (call[0], mail) == ("Success", ["Sent", 1])
    assert call[1] > 0
    assert len(rest) == 3
    for call, mail in rest:
        assert (call, mail) == (["Rejected unreachable", 0], ["NotSent", 0])


def test_a_mail_server_that_offers_no_tls_gets_no_mail_and_no_password() -> None:
    async def scene() -> tuple[object, list[bytes]]:
        async with honest_server() as server:
            sender = Smtp(SmtpServer("127.0.0.1", server.port, "starttls", "shop.example", "shop", "password"))
            return await sender.deliver("<1@shop.example>", MAIL), server.messages

    delivery, messages = asyncio.run(scene())
    assert isinstance(delivery, NotSent)
    assert messages == []
