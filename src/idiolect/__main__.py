"""`python -m idiolect` is the command line."""

from idiolect.cli.main import main

main()
