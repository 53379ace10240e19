"""Internal: the partitions of the papers."""
