"""`python -m idiolect` is the command line."""

from idiolect.cli import main

main()
