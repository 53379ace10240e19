"""Runs: the training loop, recorders, processes, and what can be followed while they work."""
