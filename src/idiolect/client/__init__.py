"""Internal: what a method sees of one client: its samples, its objective, and batches of them."""
