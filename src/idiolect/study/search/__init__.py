"""Internal: search for settings on validation data."""
