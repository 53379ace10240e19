"""Exact work done once instead of in every step."""
