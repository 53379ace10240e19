"""The partitions of the papers."""
