"""Metrics: how good a model is, for each client and over all clients' samples; one file each."""
