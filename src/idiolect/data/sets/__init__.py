"""Internal: the data sets, by name, and your own tables, arrays and images."""
