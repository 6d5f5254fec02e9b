"""`python -m host.cli`."""

from host.cli import main

main()
