"""Results of a store: summaries over seeds, intervals, tests and comparisons with published values."""
