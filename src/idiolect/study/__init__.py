"""Internal: experiments: their files, runs, store and results."""
