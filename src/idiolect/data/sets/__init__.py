"""Data sets by name, and data of the user's own."""
