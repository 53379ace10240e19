"""`python -m idiolect`, and `idiolect`, are the command line."""

from idiolect.core.loading import loading


def main() -> None:
    """Load the command line and run it."""
    with loading():
        from idiolect.cli.main import main as run
    run()


if __name__ == "__main__":
    main()
