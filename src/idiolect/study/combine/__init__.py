"""Combinations of several methods' models."""
