"""`python -m idiolect`, and `idiolect`, are the command line."""

import gc


def main() -> None:
    """Load the command line and run it."""
    gc.disable()  # what is loaded stays: looking through it again and again costs a second
    from idiolect.cli.main import main as run

    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    main()
