"""Experiments: what is run, kept and found."""
