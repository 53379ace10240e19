"""Experiments: their files, settings and published values, and how a problem is assembled."""
