"""A site: its own data, private state and models, and what it lets leave."""
