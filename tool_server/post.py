"""How this server sends, from its settings: SMTP where a server is named, otherwise a Maildir."""

from __future__ import annotations

from email.errors import MessageError
from email.headerregistry import Address
from email.utils import parseaddr

from shared_contracts.named_file import Unread, read_text
from tool_server.errors import SettingsError
from tool_server.mail import Channel, Maildir, Smtp, SmtpServer
from tool_server.settings import Settings
from tool_server.tools.notices import Post

_SENDER = "returns@shop.example"  # of a Maildir that nobody named a sender for: a name that can belong to nobody


def open_post(settings: Settings) -> Post:
    """Give the channel and the sender; raises SettingsError, which names the variable to set."""
    if settings.smtp_host is not None and settings.mail_from is None:
        raise SettingsError(
            f"KESSAI_TOOLS_MAIL_FROM is missing: the sender's address, such as {_SENDER}, "
            "since KESSAI_TOOLS_SMTP_HOST is set; see RUNBOOK.md"
        )
    sender = _SENDER if settings.mail_from is None else settings.mail_from
    domain = _domain(sender)
    if settings.mail_domain is not None:
        domain = settings.mail_domain
    return Post(_channel(settings, domain), sender, domain)


def _domain(sender: str) -> str:
    try:
        return Address(addr_spec=parseaddr(sender)[1]).domain
    except (MessageError, ValueError, IndexError):
        raise SettingsError(f"KESSAI_TOOLS_MAIL_FROM: {sender!r} is no mail address") from None


def _channel(settings: Settings, domain: str) -> Channel:
    if settings.smtp_host is not None:
        _refuse_half(settings)
        return Smtp(
            SmtpServer(
                settings.smtp_host,
                settings.smtp_port,
                settings.smtp_tls,
                domain,
                settings.smtp_user,
                _password(settings),
            )
        )
    if settings.maildir is None:
        raise SettingsError(
            "KESSAI_TOOLS_MAILDIR is missing: the directory that notices are written to, such as mail; "
            "or name a mail server in KESSAI_TOOLS_SMTP_HOST; see RUNBOOK.md"
        )
    return Maildir(settings.maildir)


def _refuse_half(settings: Settings) -> None:
    """Who is to log in needs a name and a password, and a line on which nobody else reads them."""
    if (settings.smtp_user is None) is not (settings.smtp_password_file is None):
        raise SettingsError("KESSAI_TOOLS_SMTP_USER and KESSAI_TOOLS_SMTP_PASSWORD_FILE go together; one is missing")
    if settings.smtp_user is not None and settings.smtp_tls == "none":
        raise SettingsError(
            "KESSAI_TOOLS_SMTP_TLS is none, so that everybody on the way could read the password of "
            "KESSAI_TOOLS_SMTP_PASSWORD_FILE; set starttls or implicit"
        )


def _password(settings: Settings) -> str | None:
    if settings.smtp_password_file is None:
        return None
    file = settings.smtp_password_file
    text = read_text(file, secret=True)
    if isinstance(text, Unread):
        raise SettingsError(f"KESSAI_TOOLS_SMTP_PASSWORD_FILE: {file} cannot be read: {text.why}")
    return text.strip()
