"""What of a dump's own list is filled in."""

from __future__ import annotations

import pytest

from host.stack.restore import of_others


@pytest.mark.parametrize(
    ("line", "left_out"),
    [
        ("3456; 826 16411 DEFAULT ACL - DEFAULT PRIVILEGES FOR TABLES host_rt", True),
        ("3457; 826 16412 DEFAULT ACL - DEFAULT PRIVILEGES FOR FUNCTIONS host_rt", True),
        ("3458; 826 16413 DEFAULT ACL - DEFAULT PRIVILEGES FOR FUNCTIONS host_owner", False),
        ("3459; 0 0 ACL public TABLE audit host_owner", False),
        ("215; 1259 16390 TABLE public audit host_owner", False),
        ("; Selected TOC Entries:", False),
    ],
)
def test_a_role_that_says_what_others_may_do_with_what_it_will_make_is_left_out(line: str, left_out: bool):
    assert of_others(f"{line}\n".encode(), "host_owner") is left_out
