"""What can keep the tool server from starting; a user's mistake, told in one sentence and never as a traceback."""

from __future__ import annotations


class ToolServerError(Exception):
    """The tool server cannot do what was asked. `exit_code` is the command line's: 15, 2 bad input, 1 not whole."""

    exit_code = 15


class SettingsError(ToolServerError):
    """A setting is missing, unknown or malformed."""


class PortInUseError(ToolServerError):
    """Another process listens at this address."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        super().__init__(f"{host}:{port} is in use; stop what listens there, or set KESSAI_TOOLS_PORT to another port")


class AddressError(ToolServerError):
    """The address cannot be listened at: not an address of this machine, or a port that needs more rights."""


class TrustError(ToolServerError):
    """The issuers' file, or a key set that it names, cannot be trusted as it stands."""
