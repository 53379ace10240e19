"""Sites that may not pool rows agree on one schema, from summaries that each can read before it leaves."""
