"""Internal: exact computations shared by all local steps: a held body's features, the span of the samples."""
