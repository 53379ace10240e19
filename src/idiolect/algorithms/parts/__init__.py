"""Internal: building blocks that several methods share."""
