"""Internal: readers of the file formats in which data sets are published."""
