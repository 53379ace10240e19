"""The partitions that papers used."""
