"""The hub: who takes part, what is aggregated, and what is recorded."""
