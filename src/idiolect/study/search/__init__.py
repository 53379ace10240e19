"""Internal: search for the best settings on validation data."""
