"""A federation as one compiled program."""
