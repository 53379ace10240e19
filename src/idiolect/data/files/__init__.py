"""The formats in which data sets are published."""
