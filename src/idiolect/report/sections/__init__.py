"""Internal: the small tables of a report, each by its name."""
